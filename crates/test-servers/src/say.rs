//! Output of the project's programs on stdout, whose reader may exit, as `head` does.

use std::fmt::Display;
use std::io::{self, Write};

/// Exit code of a process that SIGPIPE ended, as in a shell.
const NO_READER: i32 = 141;
/// Exit code of `meshwork` for output that cannot be written.
const SYSTEM: i32 = 6;

/// Prints a line. Without a reader the process exits silently, because its output is of no use. (Servers that were
/// started end with the process.)
pub fn say(line: impl Display) {
    let Err(error) = writeln!(io::stdout().lock(), "{line}") else {
        return;
    };
    if error.kind() != io::ErrorKind::BrokenPipe {
        // If this fails too, the exit code remains.
        let _ = writeln!(io::stderr(), "the output cannot be written: {error}");
        std::process::exit(SYSTEM);
    }
    std::process::exit(NO_READER);
}
