//! Types of parameters in JSON: durations, sizes, and words.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::sandbox::parse_size;
use crate::time;

/// Duration: seconds as a number, or a text with units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// Returns whole milliseconds, rounded up.
    #[must_use]
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Returns whole seconds, rounded up.
    #[must_use]
    pub fn seconds(self) -> u64 {
        let more = u64::from(self.0.subsec_nanos() > 0);
        self.0.as_secs().saturating_add(more)
    }
}

/// The text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no duration: give seconds, or units as 500ms, 90s, 10m, 1h30m")]
pub struct NoSpan(String);

impl FromStr for Span {
    type Err = NoSpan;

    fn from_str(text: &str) -> Result<Self, NoSpan> {
        let is_plain = |c: u8| c.is_ascii_digit() || c == b'.';
        let plain = text.bytes().all(is_plain).then(|| text.parse().ok());
        let plain = plain
            .flatten()
            .and_then(|it| Duration::try_from_secs_f64(it).ok());
        let read = plain.or_else(|| time::parse_span(text).map(Duration::from_millis));
        read.filter(|_| !text.is_empty())
            .map(Self)
            .ok_or_else(|| NoSpan(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given;
        impl Visitor<'_> for Given {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds as a number, or a text as 500ms, 90s, 10m, 1h30m")
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Span, E> {
                let read = Duration::try_from_secs_f64(seconds).map(Span);
                read.map_err(|_| E::invalid_value(Unexpected::Float(seconds), &self))
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Span, E> {
                Ok(Span(Duration::from_secs(seconds)))
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Span, E> {
                let read = u64::try_from(seconds).map(|it| Span(Duration::from_secs(it)));
                read.map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                text.parse()
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Given)
    }
}

/// Size: bytes as a number, or a text with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given;
        impl Visitor<'_> for Given {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes as a number, or a text as 512M, 2G")
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                let read = parse_size(text).map(Size);
                read.map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Given)
    }
}

/// A value that is written as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Given<T> {
            type Value = Word<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Word<T>, E> {
                text.parse().map(Word).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Given(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Duration: seconds as a number, or a text with units, such as 500ms, 90s, 10m or 1h30m.",
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?|([0-9]+(ms|s|m|h|d))+)$"},
            ],
        })
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Size: bytes as a number, or a text with a unit, such as 512M or 2G.",
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^[0-9]+[KMGT]?$"},
            ],
        })
    }
}

#[cfg(feature = "schema")]
impl<T> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}
