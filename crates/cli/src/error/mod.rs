//! The error of a command: the exit code, a message that names the thing, and a hint where one helps. Each module turns
//! its own errors into a [`CommandError`]; those of the library are turned in [`library`].

mod library;

use std::borrow::Cow;
use std::fmt::{self, Display};

use crate::exit::Exit;

/// Error of a command: its exit code, message and hint.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<Cow<'static, str>>,
    /// True if the same call may succeed later: the connection broke, or the server refuses calls for now.
    temporary: bool,
}

impl CommandError {
    /// An error that ends the command with this exit code.
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
            temporary: false,
        }
    }

    /// Sets the flag for errors that a later call may not have.
    pub(crate) fn temporary(self, temporary: bool) -> Self {
        Self { temporary, ..self }
    }

    /// True if the same call may succeed later.
    pub(crate) const fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The same error, with the part of the queue in which it came.
    pub(crate) fn in_part(self, part: impl Display) -> Self {
        let message = format!("part {part}: {}", self.message);
        Self { message, ..self }
    }

    /// Bad usage or bad input; nothing was changed.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Exit::USAGE, message)
    }

    /// The system has no `what`.
    pub(crate) fn system(what: &str, source: &std::io::Error) -> Self {
        Self::new(
            Exit::SYSTEM,
            format_args!("the system gives no {what}: {source}"),
        )
    }

    /// The same error with what can be done about it.
    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Returns the hint, if the message has none.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
