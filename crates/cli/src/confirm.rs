//! Asking before something is done to many jobs at once.

use std::io::{self, BufRead, IsTerminal};

use crate::error::Error;
use crate::out::note;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfirmError {
    #[error("{what} needs a confirmation, and this is no terminal: say it with --yes")]
    NoTerminal { what: String },
    #[error("nothing was done")]
    Declined,
}

/// Whether `what` may be done: somebody said so before, or says so now.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let what = what.to_owned();
        return Err(ConfirmError::NoTerminal { what }.into());
    }
    note(format_args!("{what}: are you sure? [y/N]"));
    let mut answer = String::new();
    // Who cannot be heard has not agreed.
    io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(ConfirmError::Declined.into()),
    }
}
