//! Parameters from JSON. An error begins with the path of its field, and suggests the name that is meant.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::flow::distance;

/// Greatest number of changed letters between a name and the one that is suggested for it.
const NEAR: usize = 2;

/// Types of numbers as serde names them, and what they are for a client.
const NUMBERS: [(&str, &str); 5] = [
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    (
        "expected u32",
        "expected a whole number from 0 to 4294967295",
    ),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected usize", "expected a whole number, 0 or more"),
];

/// Reads parameters from a text.
///
/// # Errors
/// A field is unknown or missing, or has another type; or the text is no JSON.
pub fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = from(&mut json)?;
    json.end().map_err(|error| error.to_string())?;
    Ok(read)
}

/// Reads parameters.
///
/// # Errors
/// A field is unknown or missing, or has another type.
pub fn from<'de, T: Deserialize<'de>>(
    json: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, String> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let words = words(error.inner());
        match error.path().to_string().as_str() {
            // The words name an unknown field.
            "." => suggested(words),
            _ if words.starts_with("unknown field") => suggested(words),
            path => format!("{path}: {}", suggested(words)),
        }
    })
}

/// Adds the name that is near an unknown one, as `type` for `tpye`.
fn suggested(words: String) -> String {
    if !words.starts_with("unknown ") {
        return words;
    }
    let names: Vec<_> = words.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = names.split_first() else {
        return words;
    };
    match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("{words}: did you mean `{near}`?"),
        None => words,
    }
}

/// Returns the name that differs from an unknown one in the fewest letters, two at most.
#[must_use]
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|name| (distance(unknown, name), name));
    // A short name resembles too many others.
    let near = near.filter(|(distance, name)| *distance <= NEAR.min(name.len() / 2));
    near.min().map(|(_, name)| name)
}

/// An error of serde. A place is none in a request, and that of a syntax error stays.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if !error.is_data() {
        return text;
    }
    let text = text.rsplit_once(" at line ").map_or(&*text, |it| it.0);
    let number = NUMBERS.iter().find_map(|(type_name, plain)| {
        let before = text.strip_suffix(type_name)?;
        Some(format!("{before}{plain}"))
    });
    number.unwrap_or_else(|| text.to_owned())
}
