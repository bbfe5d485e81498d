//! Conversion of a script's result: text and blobs unchanged, nothing for `()`, all else JSON.

use meshwork_model::job::limits::MAX_OUTPUT;
use rhai::{Array, Dynamic, Map};
use serde_json::Value;

/// Greatest nesting of a result: the limit of common JSON parsers.
const MAX_DEPTH: usize = 100;

/// Greatest nesting of a value that is passed to a script.
pub const MAX_NESTED: usize = 64;

/// Reason why a value cannot be a result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// A value has no form in JSON.
    #[error("the result contains a {0}, which JSON has no form for: return text, numbers or maps")]
    NoForm(String),
    /// A number is infinite or not a number.
    #[error("the result contains {0}, which is no number in JSON")]
    NoNumber(String),
    /// Lists or maps nest too deep.
    #[error("the result nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The result is too large.
    #[error("the result takes more than {MAX_OUTPUT} bytes, which is the limit")]
    TooLarge,
}

/// Returns the bytes of a result.
pub(super) fn output(value: Dynamic) -> Result<Vec<u8>, OutputError> {
    let mut out = Vec::new();
    if let Ok(text) = value.as_immutable_string_ref() {
        out.extend_from_slice(text.as_bytes());
    } else if let Ok(blob) = value.as_blob_ref() {
        out.extend_from_slice(&blob);
    } else if !value.is_unit() {
        json(&value, 0, &mut out)?;
    }
    fits(&out)?;
    Ok(out)
}

/// Returns a value as JSON, with quotes around text.
pub fn json_text(value: &Dynamic) -> Result<Vec<u8>, OutputError> {
    let mut out = Vec::new();
    json(value, 0, &mut out)?;
    Ok(out)
}

/// Converts JSON to a value of a script. Returns `None` if it is nested deeper than [`MAX_NESTED`].
pub fn dynamic(value: &Value, depth: usize) -> Option<Dynamic> {
    if depth > MAX_NESTED {
        return None;
    }
    Some(match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            // A float would lose digits.
            None if number.is_u64() => number.to_string().into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.clone().into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| dynamic(item, depth + 1));
            items.collect::<Option<Array>>()?.into()
        }
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| {
                Some((name.as_str().into(), dynamic(value, depth + 1)?))
            };
            entries.iter().map(entry).collect::<Option<Map>>()?.into()
        }
    })
}

fn fits(out: &[u8]) -> Result<(), OutputError> {
    if out.len() > MAX_OUTPUT {
        Err(OutputError::TooLarge)
    } else {
        Ok(())
    }
}

fn json(value: &Dynamic, depth: usize, out: &mut Vec<u8>) -> Result<(), OutputError> {
    if depth > MAX_DEPTH {
        return Err(OutputError::TooDeep);
    }
    fits(out)?;
    if value.is_unit() {
        out.extend_from_slice(b"null");
    } else if let Ok(truth) = value.as_bool() {
        out.extend_from_slice(truth.to_string().as_bytes());
    } else if let Ok(number) = value.as_int() {
        out.extend_from_slice(number.to_string().as_bytes());
    } else if let Ok(number) = value.as_float() {
        let number = serde_json::Number::from_f64(number)
            .ok_or_else(|| OutputError::NoNumber(number.to_string()))?;
        out.extend_from_slice(number.to_string().as_bytes());
    } else if let Ok(text) = value.as_immutable_string_ref() {
        string(&text, out);
    } else if let Ok(character) = value.as_char() {
        string(character.encode_utf8(&mut [0; 4]), out);
    } else if let Ok(array) = value.as_array_ref() {
        let items = array.iter().map(|item| (None, item));
        sequence(*b"[]", items, depth, out)?;
    } else if let Ok(map) = value.as_map_ref() {
        let entries = map.iter().map(|(name, item)| (Some(name.as_str()), item));
        sequence(*b"{}", entries, depth, out)?;
    } else {
        return Err(OutputError::NoForm(short(value.type_name())));
    }
    Ok(())
}

fn sequence<'a>(
    [open, close]: [u8; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Dynamic)>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), OutputError> {
    out.push(open);
    for (nth, (name, item)) in items.enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        if let Some(name) = name {
            string(name, out);
            out.push(b':');
        }
        json(item, depth + 1, out)?;
    }
    out.push(close);
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("text has a form in JSON, and memory takes it");
}

/// `core::ops::range::Range<i64>` is `Range` for authors of scripts.
fn short(type_name: &str) -> String {
    let path = type_name.split('<').next().unwrap_or_default();
    path.rsplit("::").next().unwrap_or_default().to_owned()
}
