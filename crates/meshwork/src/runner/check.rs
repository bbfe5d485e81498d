//! Syntax check of scripts before they run. Each runtime uses its own parser, which runs nothing of the script.

use std::fmt;

use futures_util::future::BoxFuture;

use super::RUNTIMES;

/// Why a script is not accepted, or is not known to be good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It breaks the rules of its language.
    #[error("the script cannot be read as {script_type}: {message}{at}")]
    Syntax {
        /// The type that it was given as.
        script_type: &'static str,
        /// The language's own message.
        message: String,
        /// Where.
        at: Place,
    },
    /// There is nothing here that knows the language.
    #[error("scripts of type `{script_type}` cannot be checked here; {known} can")]
    Unknown {
        /// The type.
        script_type: String,
        /// The types that can.
        known: String,
    },
    /// The parser could not run.
    #[error("the script could not be checked: {0}")]
    Unchecked(String),
}

/// A place in a script, counted from 1; 0 where the language does not say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => Ok(()),
            (line, 0) => write!(f, " (line {line})"),
            (line, column) => write!(f, " (line {line}, column {column})"),
        }
    }
}

/// Syntax check of a runtime.
pub(super) type Checker = fn(Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>>;

/// Checks the syntax of a script, as the runtime for its type would read it.
///
/// # Errors
/// If the syntax is wrong, with the position, or if the parser could not run.
pub async fn check(script_type: &str, script: &[u8]) -> Result<(), ScriptError> {
    let runtime = RUNTIMES.iter().find(|runtime| runtime.name == script_type);
    let Some(runtime) = runtime else {
        return Err(ScriptError::Unknown {
            script_type: script_type.to_owned(),
            known: super::runtimes().collect::<Vec<_>>().join(", "),
        });
    };
    (runtime.check)(script.to_vec()).await
}
