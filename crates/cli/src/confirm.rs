//! Asking before something is done to many jobs at once.

use std::io::{self, BufRead, IsTerminal};

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Whether `what` may be done: somebody said so before, or says so now.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CommandError::usage(format_args!(
            "{what} needs a confirmation, and this is no terminal: say it with --yes"
        )));
    }
    note(format_args!("{what}: are you sure? [y/N]"));
    let mut answer = String::new();
    // Who cannot be heard has not agreed.
    io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::new(Exit::FAILED, "nothing was done")),
    }
}
