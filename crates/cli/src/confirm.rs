//! Confirmation before a change of many jobs.

use std::io::{self, BufRead, IsTerminal};

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Returns without an error if the user confirms `what`, or has given `--yes`.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CommandError::usage(format_args!(
            "{what} needs a confirmation, and stdin is no terminal: confirm with --yes"
        )));
    }
    note(format_args!("{what}: are you sure? [y/N]"));
    let mut answer = String::new();
    // A failed read counts as no.
    io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::new(
            Exit::FAILED,
            "not confirmed; nothing was changed",
        )),
    }
}
