//! Actions of Nooble4, which its services send to each other: requests ([`Action`]) and answers ([`Response`]), as
//! its models read and write them in either dialect. The caller passes in new ids and the time, because this crate
//! has no clock.

mod action;
mod config;
mod fields;
mod id;
mod json;
mod plain;
mod reader;
mod response;
mod time;
mod trace_event;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use action::Action;
pub use fields::{Fault, InvalidEnvelope};
pub use id::uuid;
pub use response::{ErrorDetail, Response};
pub use time::micros;
pub use trace_event::{ActionOutcome, TraceEvent};

use json::Json;

/// Values for missing fields of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// A new id for the message.
    pub action_id: String,
    /// A new id for the trace.
    pub trace_id: String,
    /// The time, in the format of [`micros`].
    pub now: String,
}

/// A JSON value as text, which keeps numbers of any size and the order of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data(String);

/// The reason why a value is not data of an action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidData {
    /// The value cannot be serialized as JSON.
    #[error("the data cannot be written as JSON: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// The value is JSON, but not an object.
    #[error("data is an object of JSON: give names and values between braces, not {0}")]
    NoObject(&'static str),
    /// The text is not JSON.
    #[error("the data is no JSON")]
    NoJson,
}

impl Data {
    /// Returns the empty object: `{}`.
    #[must_use]
    pub fn empty() -> Self {
        Self("{}".to_owned())
    }

    /// Serializes a value to an object.
    ///
    /// # Errors
    /// The value cannot be serialized as JSON, or is not an object.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, InvalidData> {
        let text = serde_json::to_string(value).map_err(InvalidData::Unwritable)?;
        match text.as_bytes().first() {
            // serde_json writes large numbers differently from Nooble4.
            Some(b'{') if text.contains("e+") => Self::parse(&text),
            Some(b'{') => Ok(Self(text)),
            _ => Err(InvalidData::NoObject(kind(&text))),
        }
    }

    /// Parses the text of an object.
    ///
    /// # Errors
    /// The text is not JSON, or not an object.
    pub fn parse(text: &str) -> Result<Self, InvalidData> {
        match Json::read(text) {
            Some(value @ Json::Object(_)) => Ok(Self(value.text())),
            Some(value) => Err(InvalidData::NoObject(kind(&value.text()))),
            None => Err(InvalidData::NoJson),
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Deserializes the data.
    ///
    /// # Errors
    /// The data has another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = serde_json::from_str::<&RawValue>(&self.0);
        raw.map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Box::<str>::from(raw).into()))
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the kind of a JSON text, for messages.
fn kind(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    }
}

/// Initial capacity for an envelope.
const USUAL_LENGTH: usize = 1024;

/// Writes an object whose values are texts, or already JSON.
struct Writer(String);

impl Writer {
    fn new() -> Self {
        let mut text = String::with_capacity(USUAL_LENGTH);
        text.push('{');
        Self(text)
    }

    /// Begins a field, up to its name.
    fn begin(&mut self) {
        if self.0.len() > 1 {
            self.0.push_str(",\"");
        } else {
            self.0.push('"');
        }
    }

    /// Writes a text field. Names of known fields need no escapes, here and in the next function.
    fn text(&mut self, name: &str, value: &str) {
        self.begin();
        self.0.push_str(name);
        self.0.push_str("\":\"");
        json::write_escaped(value, &mut self.0);
        self.0.push('"');
    }

    fn raw(&mut self, name: &str, value: &str) {
        self.begin();
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(value);
    }

    /// Writes a field with any name.
    fn extra(&mut self, name: &str, value: &Data) {
        self.begin();
        json::write_escaped(name, &mut self.0);
        self.0.push_str("\":");
        self.0.push_str(value.text());
    }

    fn maybe_text(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    fn maybe(&mut self, name: &str, value: Option<&Data>) {
        self.raw(name, value.map_or("null", Data::text));
    }

    fn done(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn data_is_an_object() {
        let one: HashMap<_, _> = [("a", 1e300)].into_iter().collect();
        assert_eq!(Data::of(&one).unwrap().text(), r#"{"a":1e300}"#);
        for (bad, said) in [
            ("[]", "a list"),
            ("\"x\"", "a text"),
            ("null", "null"),
            ("1", "a number"),
            ("true", "true or false"),
        ] {
            let error = Data::parse(bad).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = Data::of("x").unwrap_err();
        assert!(matches!(error, InvalidData::NoObject("a text")));
        assert!(matches!(Data::parse("{"), Err(InvalidData::NoJson)));
        let data = Data::parse(" {\"a\": NaN} ").unwrap();
        assert_eq!(data.text(), "{\"a\":null}");
        assert_eq!(data.read::<HashMap<String, ()>>().unwrap().len(), 1);
        let whole: Data = Data::parse("{\"a\":12345678901234567890123}").unwrap();
        let within: HashMap<String, Data> = [("d".to_owned(), whole)].into_iter().collect();
        let written = Data::of(&within).unwrap();
        assert_eq!(written.text(), "{\"d\":{\"a\":12345678901234567890123}}");
        assert_eq!(written.read::<HashMap<String, Data>>().unwrap(), within);
    }
}
