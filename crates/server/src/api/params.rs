//! Types of parameters that several methods have.

use std::borrow::Cow;
use std::time::Duration;

use meshwork_model::time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use super::error::ApiError;

/// Greatest number of items of a page.
pub(crate) const MAX_LIMIT: usize = 1000;
/// Number of items of a page where the caller gives none.
pub(crate) const LIMIT: usize = 100;

/// Duration: seconds as a number, or a text with units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Seconds(f64),
            Text(String),
        }
        const EXPECTED: &str = "seconds as a number, or a text as 500ms, 90s, 10m, 1h30m";
        match Given::deserialize(deserializer)? {
            Given::Seconds(seconds) => Duration::try_from_secs_f64(seconds)
                .map(Self)
                .map_err(|_| D::Error::invalid_value(Unexpected::Float(seconds), &EXPECTED)),
            Given::Text(text) => {
                let plain = text
                    .parse()
                    .ok()
                    .and_then(|it| Duration::try_from_secs_f64(it).ok());
                plain
                    .or_else(|| time::parse_span(&text).map(Duration::from_millis))
                    .map(Self)
                    .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED))
            }
        }
    }
}

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

/// Parses a parameter that is written as a text.
pub(crate) fn parse<T: std::str::FromStr<Err: ToString>>(
    name: &str,
    text: &str,
) -> Result<T, ApiError> {
    text.parse()
        .map_err(|error: T::Err| ApiError::invalid(format!("{name}: {}", error.to_string())))
}

/// Parses a parameter that may be missing.
pub(crate) fn parse_some<T: std::str::FromStr<Err: ToString>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, ApiError> {
    text.map(|text| parse(name, text)).transpose()
}

/// Parses a time: RFC 3339.
pub(crate) fn moment(name: &str, text: &str) -> Result<u64, ApiError> {
    time::parse_iso(text).ok_or_else(|| {
        ApiError::invalid(format!(
            "{name}: {text:?} is no time: write RFC 3339, as 2026-01-31T12:00:00Z"
        ))
    })
}

/// Reads a cursor that is a number of items.
pub(crate) fn offset(cursor: Option<&str>) -> Result<usize, ApiError> {
    let wrong = |_| ApiError::invalid("cursor: give `next` of the page before");
    cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(wrong))
}

/// Checks the size of a page.
pub(crate) fn limit(given: Option<usize>) -> Result<usize, ApiError> {
    match given.unwrap_or(LIMIT) {
        limit if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        limit => Err(ApiError::invalid(format!(
            "limit: {limit} is not possible: give 1 to {MAX_LIMIT}"
        ))),
    }
}
