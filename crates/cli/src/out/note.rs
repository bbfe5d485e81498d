//! What is said to people, on stderr; where JSON is asked for, a line of it.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::text::printable;

/// Whether stderr is for machines.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// As the log's lines, without a time: that is the collector's to know.
#[derive(Serialize)]
struct Line<'a> {
    level: &'a str,
    message: &'a str,
}

/// From now on, lines of JSON.
pub(crate) fn notes_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Says a line. If nobody can hear it, nothing is lost that anybody waits for.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    if AS_JSON.load(Ordering::Relaxed) {
        let failed = text.starts_with("error: ");
        let line = Line {
            level: if failed { "ERROR" } else { "INFO" },
            message: &text,
        };
        let line = serde_json::to_string(&line).unwrap_or_default();
        writeln!(io::stderr(), "{line}").ok();
        return;
    }
    writeln!(io::stderr(), "{}", printable(&text)).ok();
}
