//! Format of a log line: time, job, stream, text, without control characters.

use std::fmt::Write as _;

use meshwork_runtime::log::Entry;

/// Formats entries as lines.
pub(super) fn lines(time: &str, job: &str, entries: &[Entry]) -> String {
    let mut out = String::new();
    for entry in entries {
        let _ = match entry {
            Entry::Line { stream, text } => {
                writeln!(out, "{time} {job} {} {}", stream.as_str(), plain(text))
            }
            Entry::Dropped(lines) => writeln!(out, "{time} {job} - {lines} lines dropped"),
        };
    }
    out
}

/// Returns text on one line, with control characters escaped.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
