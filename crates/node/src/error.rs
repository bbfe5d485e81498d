//! Failed calls, in the words of the packages.

use std::error::Error as _;

use meshwork::Error;

/// A call that has failed.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The job was refused before the call, or the call failed; the text says why.
    Failed(String),
    /// The job has not ended in time.
    ResultTimeout(String),
}

impl ClientError {
    /// Returns the message.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Failed(message) | Self::ResultTimeout(message) => message,
        }
    }
}

impl From<Error> for ClientError {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        match error {
            Error::JobWaitTimeout { .. } => Self::ResultTimeout(message),
            _ => Self::Failed(message),
        }
    }
}
