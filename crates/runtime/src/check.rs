//! Syntax check of scripts before they run. Each runtime uses its own parser, which runs nothing of the script.

use std::fmt;

use futures_util::future::BoxFuture;

/// Reason why a script is refused, or could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The script has a syntax error.
    #[error("the script cannot be read as {script_type}: {message}{at}")]
    Syntax {
        /// Script type of the check.
        script_type: &'static str,
        /// Message of the language's parser.
        message: String,
        /// Position of the error.
        at: SourcePosition,
    },
    /// No parser for this script type is available.
    #[error("scripts of type `{script_type}` cannot be checked here; {known} can")]
    Unknown {
        /// Script type.
        script_type: String,
        /// Script types that can be checked.
        known: String,
    },
    /// The parser could not run.
    #[error("the script could not be checked: {0}")]
    Unchecked(String),
}

/// A position in a script, counted from 1; 0 if the parser does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// Line.
    pub line: usize,
    /// Character in the line.
    pub column: usize,
}

impl fmt::Display for SourcePosition {
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
