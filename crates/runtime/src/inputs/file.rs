//! Inputs of scripts and programs: a file, and values.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use meshwork_model::number;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Entry, Inputs};

impl Inputs {
    /// Returns the size of all results, in bytes.
    pub(crate) fn size(&self) -> usize {
        let sizes = self
            .entries()
            .filter_map(|entry| entry.input.output.as_ref());
        sizes.map(Vec::len).sum()
    }

    /// Returns the content of the file for programs: an object with an entry per result. JSON keeps its bytes.
    pub(crate) fn file(&self) -> Vec<u8> {
        let entries = self.entries().flat_map(|entry| {
            let shown = entry.shown();
            entry.keys().map(move |key| (key.to_owned(), shown.clone()))
        });
        let entries: BTreeMap<String, Shown<'_>> = entries.collect();
        serde_json::to_vec(&entries).expect("texts and JSON have a form in JSON")
    }
}

/// An entry of the file for programs.
#[derive(Debug, Clone, Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    errors: &'a BTreeMap<usize, String>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json<'a>>,
}

/// JSON as it is, or a text.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Json<'a> {
    Raw(&'a RawValue),
    Text(&'a str),
}

impl Entry {
    /// Returns the entry of the file.
    fn shown(&self) -> Shown<'_> {
        let mut shown = Shown {
            base64: None,
            error: None,
            errors: &self.input.errors,
            id: &self.input.id,
            result: None,
        };
        match self.bytes() {
            Ok(output) => match std::str::from_utf8(output) {
                Ok(text) => {
                    let raw = serde_json::from_str(text).map(Json::Raw);
                    shown.result = Some(raw.unwrap_or(Json::Text(text)));
                }
                Err(_) => shown.base64 = Some(BASE64.encode(output)),
            },
            Err(error) => shown.error = Some(error.to_string()),
        }
        shown
    }
}

/// Returns a result as a value: JSON if it is JSON, else text; `None` for other bytes. A number that 64 bits cannot hold
/// is a text.
pub(crate) fn value(output: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(output).ok()?;
    Some(number::read(text).unwrap_or_else(|_| text.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::inputs;
    use super::*;

    #[test]
    fn the_file_has_an_entry_for_each_name() {
        let file = String::from_utf8(inputs().file()).unwrap();
        let number = r#""n":{"id":"n","result":[1e400,-0]}"#;
        assert!(file.contains(number), "{file}");
        let file: Value = serde_json::from_str(&file.replace("1e400", "1")).unwrap();
        assert_eq!(file["load"], json!({"id": "a", "result": [1, 2]}));
        assert_eq!(file["again"], file["load"]);
        assert_eq!(file["text"]["result"], "two words");
        assert_eq!(file["c"]["base64"], "/w==");
        assert!(file["gone"]["error"].as_str().unwrap().contains("gone"));
        assert!(file.get("a").is_none(), "{file}");
    }
}
