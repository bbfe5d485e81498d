//! Names of a flow's jobs, which are names in its expressions too, and places in its file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::limits::MAX_NAME;

/// Names that expressions use for something else.
pub const RESERVED: [&str; 5] = ["flow", "env", "inputs", "item", "index"];

/// The name of a job within its flow: `[a-z][a-z0-9_]{0,63}`, and none of [`RESERVED`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// The reason why a text is no name of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeNameError {
    /// It has a form that expressions could not use.
    #[error(
        "{0:?} is no name of a job: use a-z, 0-9 and _, a letter first, at most {MAX_NAME} bytes \
         (a hyphen is a minus in expressions)"
    )]
    Form(String),
    /// It is one of [`RESERVED`].
    #[error(
        "the name `{0}` is reserved: expressions use it for something else; choose another one"
    )]
    Reserved(String),
}

impl NodeName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(text: &str) -> Result<Self, NodeNameError> {
        let word = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || text.len() > MAX_NAME || !text.bytes().all(word) {
            let shown = text.chars().take(MAX_NAME).collect();
            return Err(NodeNameError::Form(shown));
        }
        if RESERVED.contains(&text) {
            return Err(NodeNameError::Reserved(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for NodeName {
    type Error = NodeNameError;

    fn try_from(text: String) -> Result<Self, NodeNameError> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place in a flow's file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "[u32; 2]", into = "[u32; 2]")]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl From<[u32; 2]> for Position {
    fn from([line, column]: [u32; 2]) -> Self {
        Self { line, column }
    }
}

impl From<Position> for [u32; 2] {
    fn from(position: Position) -> Self {
        [position.line, position.column]
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_that_nothing_else_uses() {
        for good in ["a", "fetch", "a_1", "if", &"x".repeat(64)] {
            assert_eq!(good.parse::<NodeName>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "1a", "_a", "a-b", "ä", "a b", &"x".repeat(65)] {
            let error = bad.parse::<NodeName>().unwrap_err();
            assert!(matches!(error, NodeNameError::Form(_)), "{bad}");
        }
        for reserved in RESERVED {
            let error = reserved.parse::<NodeName>().unwrap_err();
            assert_eq!(error, NodeNameError::Reserved(reserved.to_owned()));
        }
    }
}
