//! Conversion between fields of a hash and values. Plain clients write these hashes too. A missing field has its
//! default; an unreadable one is refused by name where no default is safe.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::limits::MAX_FIELD;
use crate::job::EnvTooLarge;

/// Number of characters that an error shows of a value.
const SHOWN: usize = 40;

/// The reason why a record was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: the field `{field}` {fault}")]
pub struct RecordError {
    /// The record: the name of its key without the prefix of a layout.
    pub object: String,
    /// The field.
    pub field: &'static str,
    /// The fault.
    pub fault: FieldFault,
}

/// The fault of a field. An error shows a value only if the field cannot hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// The field is missing and has no default.
    #[error("is missing")]
    Missing,
    /// The bytes are not UTF-8.
    #[error("is no text in UTF-8")]
    NotText,
    /// The value is not a number, or out of range.
    #[error("is {shown:?}: write a whole number from {least} to {most}")]
    Number {
        /// The value.
        shown: String,
        /// Least allowed value.
        least: u32,
        /// Greatest allowed value.
        most: u32,
    },
    /// The value is not JSON of the expected form.
    #[error("is no JSON {form}")]
    Json {
        /// The expected form.
        form: &'static str,
    },
    /// The value is none of the allowed words.
    #[error("is {shown:?}: {wanted}")]
    Word {
        /// The value.
        shown: String,
        /// The allowed words.
        wanted: String,
    },
    /// The list has too many items.
    #[error("has {count} items: at most {most} are allowed")]
    TooMany {
        /// Number of items.
        count: usize,
        /// Greatest allowed number.
        most: usize,
    },
    /// The environment is too large.
    #[error("is not possible: {0}")]
    Environment(EnvTooLarge),
    /// The value is too long.
    #[error("has {len} bytes: at most {most} are allowed")]
    TooLong {
        /// Length in bytes.
        len: usize,
        /// Greatest allowed length in bytes.
        most: usize,
    },
}

fn shown(value: &str) -> String {
    value.chars().take(SHOWN).collect()
}

/// Fields of one record. Each read removes its field.
pub(super) struct Fields {
    object: String,
    fields: BTreeMap<String, Vec<u8>>,
}

type Result<T> = std::result::Result<T, RecordError>;

impl Fields {
    pub(super) fn new(
        object: impl fmt::Display,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Self {
        Self {
            object: object.to_string(),
            fields: fields.into_iter().collect(),
        }
    }

    /// Returns the fields of a record that is a JSON object in a field of another one.
    pub(super) fn of_json(object: impl fmt::Display, json: serde_json::Map<String, Value>) -> Self {
        Self::new(
            object,
            flat(json).map(|(name, text)| (name, text.into_bytes())),
        )
    }

    pub(super) fn fault(&self, field: &'static str, fault: FieldFault) -> RecordError {
        RecordError {
            object: self.object.clone(),
            field,
            fault,
        }
    }

    /// Removes a field and returns its bytes, unless it is empty.
    fn bytes(&mut self, field: &'static str) -> Result<Option<Vec<u8>>> {
        match self.fields.remove(field) {
            None => Ok(None),
            Some(value) if value.is_empty() => Ok(None),
            Some(value) if value.len() > MAX_FIELD => {
                let (len, most) = (value.len(), MAX_FIELD);
                Err(self.fault(field, FieldFault::TooLong { len, most }))
            }
            Some(value) => Ok(Some(value)),
        }
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<Option<String>> {
        let Some(value) = self.bytes(field)? else {
            return Ok(None);
        };
        let text = String::from_utf8(value);
        text.map(Some)
            .map_err(|_| self.fault(field, FieldFault::NotText))
    }

    /// Reads a time in seconds. An unreadable one is 0, because nothing depends on it.
    pub(super) fn seconds(&mut self, field: &'static str) -> u32 {
        self.number(field).ok().flatten().unwrap_or_default()
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<Option<u32>> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        text.trim().parse().map(Some).map_err(|_| {
            let fault = FieldFault::Number {
                shown: shown(&text),
                least: 0,
                most: u32::MAX,
            };
            self.fault(field, fault)
        })
    }

    /// Parses the text of a field.
    pub(super) fn parsed<T>(&mut self, field: &'static str) -> Result<Option<T>>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        let parsed = text.parse::<T>();
        parsed.map(Some).map_err(|error| {
            let fault = FieldFault::Word {
                shown: shown(&text),
                wanted: error.to_string(),
            };
            self.fault(field, fault)
        })
    }

    pub(super) fn flag(&mut self, field: &'static str) -> Result<Option<bool>> {
        match self.text(field)?.as_deref() {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(other) => {
                let fault = FieldFault::Word {
                    shown: shown(other),
                    wanted: "true or false".to_owned(),
                };
                Err(self.fault(field, fault))
            }
        }
    }

    pub(super) fn list<T>(&mut self, field: &'static str, form: &'static str) -> Result<Vec<T>>
    where
        T: DeserializeOwned,
    {
        let value = self.bytes(field)?.unwrap_or_else(|| b"[]".to_vec());
        serde_json::from_slice(&value).map_err(|_| self.fault(field, FieldFault::Json { form }))
    }

    /// Reads a JSON object with values of any type: text unchanged, other values as JSON.
    pub(super) fn map(&mut self, field: &'static str) -> Result<BTreeMap<String, String>> {
        let Some(value) = self.bytes(field)? else {
            return Ok(BTreeMap::new());
        };
        let form = "object of texts";
        match serde_json::from_slice(&value) {
            Ok(Value::Object(map)) => Ok(flat(map).collect()),
            _ => Err(self.fault(field, FieldFault::Json { form })),
        }
    }

    /// Reads the result of a job. Plain runners write a plain value, which becomes the item `result`.
    pub(super) fn result(&mut self, field: &'static str) -> Result<BTreeMap<String, String>> {
        let Some(text) = self.text(field)? else {
            return Ok(BTreeMap::new());
        };
        Ok(match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => flat(map).collect(),
            _ => BTreeMap::from([(field.to_owned(), text)]),
        })
    }
}

/// Returns the items of a JSON object as texts, without those that are null.
fn flat(map: serde_json::Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    map.into_iter().filter_map(|(name, value)| {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text,
            other => other.to_string(),
        };
        Some((name, text))
    })
}

/// Returns the fields of the hash of `record`: lists and maps as JSON, other values as text.
pub(super) fn fields_of(record: &impl Serialize) -> Vec<(String, String)> {
    match serde_json::to_value(record) {
        Ok(Value::Object(map)) => flat(map).collect(),
        // Records are structs of texts, numbers, lists and maps: their serialization cannot fail.
        _ => Vec::new(),
    }
}

/// Serializes a value as its text.
pub(super) fn word<T: fmt::Display, S: Serializer>(
    value: &T,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Serializes an optional value as its text.
pub(super) fn some_word<T: fmt::Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// Reads a value from its text.
pub(super) fn read_word<'de, T: FromStr<Err: fmt::Display>, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<T, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// Reads an optional value from its text.
pub(super) fn read_some_word<'de, T: FromStr<Err: fmt::Display>, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| text.parse().map_err(serde::de::Error::custom))
        .transpose()
}

/// Checks that a list is not too long.
pub(super) fn count_fault<T>(items: &[T], most: usize) -> Option<FieldFault> {
    let count = items.len();
    (count > most).then_some(FieldFault::TooMany { count, most })
}

/// Checks that a text is not too long.
pub(super) fn length_fault(len: usize, most: usize) -> Option<FieldFault> {
    (len > most).then_some(FieldFault::TooLong { len, most })
}

/// Checks that a number of seconds is at least 1 and not too high.
pub(super) fn seconds_fault(seconds: u32, most: u32) -> Option<FieldFault> {
    let fault = || FieldFault::Number {
        shown: seconds.to_string(),
        least: 1,
        most,
    };
    (seconds == 0 || seconds > most).then(fault)
}

/// Returns an error for the first check that found a fault.
pub(super) fn first_fault(
    object: impl fmt::Display,
    checks: impl IntoIterator<Item = (&'static str, Option<FieldFault>)>,
) -> Result<()> {
    let mut faults = checks.into_iter();
    match faults.find_map(|(field, fault)| Some((field, fault?))) {
        Some((field, fault)) => Err(RecordError {
            object: object.to_string(),
            field,
            fault,
        }),
        None => Ok(()),
    }
}
