//! Values of a flow's file with their places, whether it is YAML or TOML.

use meshwork_model::flow::Position;
use serde_json::Value;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub(super) at: Position,
    pub(super) data: Data,
}

/// Type and content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(Key, Tree)>),
}

/// A key of a map and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) at: Position,
    pub(super) text: String,
}

/// The longest text that an error repeats, in characters.
const SHOWN: usize = 40;

impl Tree {
    /// The value as errors call it.
    pub(super) fn shown(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(truth) => format!("the bool {truth}"),
            Data::Int(number) => format!("the number {number}"),
            Data::Float(number) => format!("the number {number}"),
            Data::Text(text) if text.chars().count() > SHOWN => {
                let start: String = text.chars().take(SHOWN).collect();
                format!("the text {start:?}…")
            }
            Data::Text(text) => format!("the text {text:?}"),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a map".to_owned(),
        }
    }

    /// The value as JSON. Numbers are finite: the readers refuse others.
    pub(super) fn json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(truth) => Value::Bool(*truth),
            Data::Int(number) => Value::from(*number),
            Data::Float(number) => Value::from(*number),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            Data::Map(entries) => {
                let entries = entries.iter();
                Value::Object(
                    entries
                        .map(|(key, value)| (key.text.clone(), value.json()))
                        .collect(),
                )
            }
        }
    }
}

/// The reason why a text is no YAML or TOML that a flow may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: Option<Position>,
    pub(super) message: String,
}

impl SyntaxError {
    pub(super) fn new(at: Position, message: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            message: message.into(),
        }
    }
}

/// The deepest nesting of values.
pub(super) const MAX_DEPTH: usize = 64;

pub(super) fn too_deep(at: Position) -> SyntaxError {
    SyntaxError::new(
        at,
        format!("values are nested more than {MAX_DEPTH} levels deep: make them flatter"),
    )
}

/// The fault of a number with more digits than 64 bits hold.
pub(super) fn too_long(at: Position, number: &str) -> SyntaxError {
    let message = format!(
        "the number {number} has more digits than 64 bits hold: quote it to make it a text"
    );
    SyntaxError::new(at, message)
}
