//! Values of expressions: from the output of a job, and to JSON.

use meshwork_model::number;
use rhai::Dynamic;
use serde_json::Value;

use super::MAX_VALUE;
use meshwork_runtime::rhai::value::{OutputError, json_text};

/// The value of a job's output: JSON if it is JSON, else the text. A number that 64 bits cannot hold with all its digits
/// becomes a text, so that no expression calculates with another number.
#[must_use]
pub fn output_value(output: &str) -> Value {
    number::read(output).unwrap_or_else(|_| Value::String(output.to_owned()))
}

/// The reason why the value of an expression cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValueError {
    #[error("{0}")]
    Output(#[from] OutputError),
    #[error("its value takes {0} bytes: at most {MAX_VALUE} are allowed")]
    TooLarge(usize),
}

/// The value of an expression as JSON.
pub(super) fn json(value: &Dynamic) -> Result<Value, ValueError> {
    let text = json_text(value)?;
    if text.len() > MAX_VALUE {
        return Err(ValueError::TooLarge(text.len()));
    }
    Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
}

/// A value within a text: a text as it is, nothing for `()`, all else as JSON.
pub(super) fn text(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push_str(text),
        other => out.push_str(&other.to_string()),
    }
}
