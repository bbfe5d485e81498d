//! Messages for people on stderr; with `--log-format json`, a line of JSON each.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use meshwork_model::time;
use serde::Serialize;

use super::text::{for_terminal, printable};

/// True if messages are JSON.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Same format as the lines of the log.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'a str,
    message: &'a str,
}

/// Switches to lines of JSON.
pub(crate) fn notes_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Prints output of a script on stderr, with a newline at the end: unchanged, but without control characters on a
/// terminal. Write errors are ignored.
pub(crate) fn script_note(bytes: &[u8]) {
    if AS_JSON.load(Ordering::Relaxed) {
        return note(String::from_utf8_lossy(bytes));
    }
    let mut stderr = io::stderr();
    let shown = match stderr.is_terminal() {
        true => for_terminal(bytes),
        false => bytes.into(),
    };
    stderr.write_all(&[&*shown, b"\n"].concat()).ok();
}

/// Prints a line. Write errors are ignored.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    if AS_JSON.load(Ordering::Relaxed) {
        let failed = text.starts_with("error: ");
        let line = Line {
            timestamp: time::iso(meshwork::host_ms()),
            level: if failed { "ERROR" } else { "INFO" },
            message: &text,
        };
        let line = serde_json::to_string(&line).unwrap_or_default();
        writeln!(io::stderr(), "{line}").ok();
        return;
    }
    writeln!(io::stderr(), "{}", printable(&text)).ok();
}

/// Prints warnings, a line each.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        note(format_args!("warning: {warning}"));
    }
}
