//! Reading an envelope's fields one after the other, and what was wrong with them.

use std::fmt;

use super::id::uuid;
use super::json::Json;
use super::{Data, time};
use crate::keys::nooble::Dialect;

/// A field that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field; within others with dots, and empty for the whole.
    pub field: String,
    /// What is wrong, in the word that Nooble4's models have for it.
    pub kind: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(self.kind),
            field => write!(f, "{field}: {}", self.kind),
        }
    }
}

impl Fault {
    /// The same, of a field within another.
    pub(super) fn within(self, field: &str) -> Self {
        Self {
            field: format!("{field}.{}", self.field),
            ..self
        }
    }
}

/// Why a text is no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} is not valid: {}", told(.faults))]
pub struct InvalidEnvelope {
    /// What it was to be.
    pub what: &'static str,
    /// Everything that is wrong with it.
    pub faults: Vec<Fault>,
}

fn told(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
    faults.join(", ")
}

/// The fields that are left to read, and what was wrong with those before.
pub(super) struct Fields {
    what: &'static str,
    left: Vec<(String, Json)>,
    faults: Vec<Fault>,
}

impl Fields {
    /// The fields of a text. Of a name that comes twice, models that drop what they do not know (lists) take the
    /// first value, the others the last.
    pub(super) fn read(
        what: &'static str,
        bytes: &[u8],
        dialect: Dialect,
    ) -> Result<Self, InvalidEnvelope> {
        let fault = |kind| InvalidEnvelope {
            what,
            faults: vec![Fault {
                field: String::new(),
                kind,
            }],
        };
        let text = std::str::from_utf8(bytes).map_err(|_| fault("not_utf8"))?;
        match Json::read_as(text, dialect == Dialect::Lists) {
            Some(Json::Object(left)) => Ok(Self {
                what,
                left,
                faults: Vec::new(),
            }),
            Some(_) => Err(fault("model_type")),
            None => Err(fault("json_invalid")),
        }
    }

    /// The fields of an object within.
    pub(super) fn within(left: Vec<(String, Json)>) -> Self {
        Self {
            what: "",
            left,
            faults: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, field: &str, kind: &'static str) {
        let field = field.to_owned();
        self.faults.push(Fault { field, kind });
    }

    /// Adds what was wrong within a field.
    pub(super) fn faults_of(&mut self, field: &str, faults: Vec<Fault>) {
        let within = faults.into_iter().map(|fault| fault.within(field));
        self.faults.extend(within);
    }

    /// A field's value, if it is there.
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.left.iter().position(|(is, _)| is == name)?;
        Some(self.left.remove(at).1)
    }

    /// A field that must be there, read by `read`, which gives a word for what is wrong.
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json) -> Result<T, &'static str>,
    ) -> Option<T> {
        let value = match self.take(name) {
            Some(value) => read(value),
            None => Err("missing"),
        };
        value.map_err(|kind| self.fault(name, kind)).ok()
    }

    /// A field that may be missing; what then, `default` says.
    pub(super) fn or<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json) -> Result<T, &'static str>,
        default: impl FnOnce() -> T,
    ) -> Option<T> {
        match self.take(name) {
            None => Some(default()),
            Some(value) => read(value).map_err(|kind| self.fault(name, kind)).ok(),
        }
    }

    /// A field that may be missing or null.
    pub(super) fn maybe<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json) -> Result<T, &'static str>,
    ) -> Option<T> {
        match self.take(name) {
            None | Some(Json::Null) => None,
            Some(value) => read(value).map_err(|kind| self.fault(name, kind)).ok(),
        }
    }

    /// What is left, if nothing was wrong.
    pub(super) fn rest(self) -> Result<Vec<(String, Data)>, InvalidEnvelope> {
        let Self { what, left, faults } = self;
        if !faults.is_empty() {
            return Err(InvalidEnvelope { what, faults });
        }
        let data = |(name, value): (String, Json)| (name, Data(value.text()));
        Ok(left.into_iter().map(data).collect())
    }

    /// The names that are left, and what was wrong.
    pub(super) fn ends(self) -> (Vec<String>, Vec<Fault>) {
        let names = self.left.into_iter().map(|(name, _)| name);
        (names.collect(), self.faults)
    }
}

pub(super) fn id(value: Json) -> Result<String, &'static str> {
    match value {
        Json::Text(text) => uuid(&text).ok_or("uuid_parsing"),
        _ => Err("uuid_type"),
    }
}

pub(super) fn text(value: Json) -> Result<String, &'static str> {
    match value {
        Json::Text(text) => Ok(text),
        _ => Err("string_type"),
    }
}

pub(super) fn timestamp(value: Json) -> Result<String, &'static str> {
    let written = match value {
        Json::Text(text) => time::read(&text),
        Json::Number(text) => {
            let exact = time::number(&text);
            let number = exact.or_else(|| Some((text.parse::<f64>().ok()? * 1e6) as i128));
            number.and_then(time::number_of)
        }
        _ => return Err("datetime_type"),
    };
    written.ok_or("datetime_from_date_parsing")
}

pub(super) fn object(value: Json) -> Result<Data, &'static str> {
    match value {
        Json::Object(_) => Ok(Data(value.text())),
        _ => Err("dict_type"),
    }
}

/// Yes or no, in the words that theirs take for it.
pub(super) fn truth(value: Json) -> Result<bool, &'static str> {
    let word = match &value {
        Json::Bool(is) => return Ok(*is),
        Json::Number(number) => match number.as_str() {
            "1" | "1.0" => return Ok(true),
            "0" | "0.0" | "-0.0" => return Ok(false),
            _ => return Err("bool_parsing"),
        },
        Json::Text(text) => text.to_ascii_lowercase(),
        _ => return Err("bool_type"),
    };
    match word.as_str() {
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
        _ => Err("bool_parsing"),
    }
}
