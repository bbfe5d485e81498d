//! What the chores print: data on stdout, which may be read by a program that leaves, as `head` does.

use std::fmt::Display;
use std::io::{self, Write};

/// As if SIGPIPE had ended it, as a shell says it.
const NO_READER: i32 = 141;
/// As the command `meshwork`, when its output cannot be written.
const SYSTEM: i32 = 6;

/// Prints a line. Where nobody reads any more this is the end, without a word: there is nothing to do for anybody.
/// (Servers that were started end with the process.)
pub fn say(line: impl Display) {
    let Err(error) = writeln!(io::stdout().lock(), "{line}") else {
        return;
    };
    if error.kind() != io::ErrorKind::BrokenPipe {
        // If that is not heard either, the exit code tells.
        let _ = writeln!(io::stderr(), "the output cannot be written: {error}");
        std::process::exit(SYSTEM);
    }
    std::process::exit(NO_READER);
}
