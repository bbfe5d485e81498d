//! What is said to people, on stderr.

use std::fmt::Display;
use std::io::{self, Write};

use super::text::printable;

/// Says a line. If nobody can hear it, nothing is lost that anybody waits for.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    writeln!(io::stderr(), "{}", printable(&text)).ok();
}
