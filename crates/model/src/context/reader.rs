//! Fields of a hash as values, and values as fields. Plain clients write these hashes too: a missing field has its
//! default, and what cannot be read is refused by name where no default would be safe.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::limits::MAX_FIELD;

/// Characters of a value that an error shows.
const SHOWN: usize = 40;

/// Why a record was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: the field `{field}` {fault}")]
pub struct RecordError {
    /// The record: the name of its key without the prefix of a layout.
    pub object: String,
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: FieldFault,
}

/// What is wrong with a field. Values are shown only where none can be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// It has no default.
    #[error("is missing")]
    Missing,
    /// The bytes are no UTF-8.
    #[error("is no text in UTF-8")]
    NotText,
    /// It is no number, or one that is too large.
    #[error("is {shown:?}: write a whole number from {least} to {most}")]
    Number {
        /// The value.
        shown: String,
        /// The lowest allowed.
        least: u32,
        /// The highest allowed.
        most: u32,
    },
    /// It is no JSON of the right form.
    #[error("is no JSON {form}")]
    Json {
        /// What was wanted.
        form: &'static str,
    },
    /// It is none of the words.
    #[error("is {shown:?}: {wanted}")]
    Word {
        /// The value.
        shown: String,
        /// What was wanted.
        wanted: String,
    },
    /// It has too many items.
    #[error("has {count} items: at most {most} are allowed")]
    TooMany {
        /// How many there are.
        count: usize,
        /// The most allowed.
        most: usize,
    },
    /// It has too many bytes.
    #[error("has {len} bytes: at most {most} are allowed")]
    TooLong {
        /// Its length.
        len: usize,
        /// The most allowed.
        most: usize,
    },
}

fn shown(value: &str) -> String {
    value.chars().take(SHOWN).collect()
}

/// Fields of one record, each to be taken once.
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

    /// The fields of a record that stands as a JSON object in a field of another.
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

    /// The bytes, unless there are none.
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

    /// A time in seconds; 0 for what is none, since nothing is decided by it.
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

    /// What the text says, in its own words.
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

    /// A JSON object with whatever values: text as it is, the rest as JSON.
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

    /// The result of a job. A plain value, which plain runners write, is the item `result`.
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

/// Items of a JSON object as texts; those that are null are left out.
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

/// The fields of a hash that say what `record` does: lists and maps as JSON, all else as text.
pub(super) fn fields_of(record: &impl Serialize) -> Vec<(String, String)> {
    match serde_json::to_value(record) {
        Ok(Value::Object(map)) => flat(map).collect(),
        // Records are structs of texts, numbers, lists and maps: nothing in them fails.
        _ => Vec::new(),
    }
}

/// Writes a value as its text.
pub(super) fn word<T: fmt::Display, S: Serializer>(
    value: &T,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Writes a value as its text, where there is one.
pub(super) fn some_word<T: fmt::Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
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

/// The first of these checks that found something.
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
