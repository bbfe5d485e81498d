//! Answers of functions.

use std::fmt::Display;

use rhai::{Array, Dynamic, EvalAltResult, Map, Position};
use serde_json::Value;

/// Answer of a function, or the error that it throws.
pub(crate) type Answer<T> = Result<T, Box<EvalAltResult>>;

/// Returns the error that a script can catch.
pub(crate) fn thrown(message: impl Display) -> Box<EvalAltResult> {
    let text = message.to_string().into();
    EvalAltResult::ErrorRuntime(text, Position::NONE).into()
}

/// Returns JSON as a value of a script.
pub(crate) fn dynamic(value: Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => value.into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => float.into(),
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => items.into_iter().map(dynamic).collect::<Array>().into(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let map: Map = fields
                .map(|(name, value)| (name.into(), dynamic(value)))
                .collect();
            map.into()
        }
    }
}
