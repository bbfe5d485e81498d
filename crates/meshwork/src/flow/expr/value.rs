//! Values of expressions: from the output of a job, and to JSON.

use rhai::Dynamic;
use serde_json::Value;

use super::MAX_VALUE;
use crate::runner::rhai::value::{OutputError, json_text};

/// The value of a job's output: JSON if it is JSON, else the text. A whole number that does not fit into 64 bits becomes
/// a text with all its digits, so that no expression calculates with another number.
#[must_use]
pub fn output_value(output: &str) -> Value {
    match serde_json::from_str(&exact(output)) {
        Ok(value) => value,
        Err(_) => Value::String(output.to_owned()),
    }
}

/// JSON whose whole numbers beyond 64 bits are texts.
fn exact(json: &str) -> std::borrow::Cow<'_, str> {
    // The shortest number that does not fit has 19 digits.
    const LONG: usize = 19;
    let bytes = json.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = at;
                at += 1;
                while at < bytes.len()
                    && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
                {
                    at += 1;
                }
                let number = &json[start..at];
                let digits = number.strip_prefix('-').unwrap_or(number);
                let whole = digits.bytes().all(|c| c.is_ascii_digit()) && !digits.starts_with('0');
                if whole && digits.len() >= LONG && number.parse::<i64>().is_err() {
                    out.push_str(&json[copied..start]);
                    out.push('"');
                    out.push_str(number);
                    out.push('"');
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return json.into();
    }
    out.push_str(&json[copied..]);
    out.into()
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
