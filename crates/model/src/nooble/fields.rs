//! Sequential reader for the fields of an envelope, which collects the faults.

use std::{fmt, vec};

use super::id;
use super::json::{Field, Json, Object};
use super::{Data, time};
use crate::keys::nooble::Dialect;

/// A field that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field; nested ones with dots, and empty for the whole.
    pub field: String,
    /// Kind of the fault, in the word of Nooble4's models.
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
    /// Returns the same fault, of a field within another one.
    pub(super) fn within(self, field: &str) -> Self {
        Self {
            field: format!("{field}.{}", self.field),
            ..self
        }
    }
}

/// The reason why a text is not an envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} is not valid: {}", listed(.faults))]
pub struct InvalidEnvelope {
    /// Expected kind of envelope.
    pub what: &'static str,
    /// All faults.
    pub faults: Vec<Fault>,
}

fn listed(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
    faults.join(", ")
}

/// Fields that have not been read, and the faults of those that have.
///
/// Fields nearly always come in the order in which they are read, so the next one is usually the right one.
pub(super) struct Fields<'a> {
    what: &'static str,
    /// Unread fields before the last one that was read.
    passed: Vec<Field<'a>>,
    /// Fields after it.
    ahead: vec::IntoIter<Field<'a>>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    /// Reads the fields of a text. Of duplicate names, models that drop unknown fields (lists) take the first value,
    /// the others the last.
    pub(super) fn read(
        what: &'static str,
        bytes: &'a [u8],
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
            Some(Json::Object(object)) => Ok(Self {
                what,
                ..Self::within(object)
            }),
            Some(_) => Err(fault("model_type")),
            None => Err(fault("json_invalid")),
        }
    }

    /// Returns the fields of a nested object.
    pub(super) fn within(object: Object<'a>) -> Self {
        Self {
            what: "",
            passed: Vec::new(),
            ahead: object.fields.into_iter(),
            faults: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, field: &str, kind: &'static str) {
        let field = field.to_owned();
        self.faults.push(Fault { field, kind });
    }

    /// Adds the faults of a nested object.
    pub(super) fn faults_of(&mut self, field: &str, faults: Vec<Fault>) {
        let within = faults.into_iter().map(|fault| fault.within(field));
        self.faults.extend(within);
    }

    /// Returns the value of a field, if it is present.
    pub(super) fn take(&mut self, name: &str) -> Option<Json<'a>> {
        let is = |(is, _): &Field<'a>| is == name;
        let Some(at) = self.ahead.as_slice().iter().position(is) else {
            let at = self.passed.iter().position(is)?;
            return Some(self.passed.remove(at).1);
        };
        if at > 0 {
            self.passed.extend(self.ahead.by_ref().take(at));
        }
        self.ahead.next().map(|(_, value)| value)
    }

    /// Returns the unread fields, in order.
    fn left(self) -> impl Iterator<Item = Field<'a>> {
        self.passed.into_iter().chain(self.ahead)
    }

    /// Reads a required field. `read` returns a word for a fault.
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json<'a>) -> Result<T, &'static str>,
    ) -> Option<T> {
        let value = match self.take(name) {
            Some(value) => read(value),
            None => Err("missing"),
        };
        value.map_err(|kind| self.fault(name, kind)).ok()
    }

    /// Reads an optional field; `default` returns the value of a missing one.
    pub(super) fn or<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json<'a>) -> Result<T, &'static str>,
        default: impl FnOnce() -> T,
    ) -> Option<T> {
        match self.take(name) {
            None => Some(default()),
            Some(value) => read(value).map_err(|kind| self.fault(name, kind)).ok(),
        }
    }

    /// Reads a field that may be missing or null.
    pub(super) fn maybe<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json<'a>) -> Result<T, &'static str>,
    ) -> Option<T> {
        match self.take(name) {
            None | Some(Json::Null) => None,
            Some(value) => read(value).map_err(|kind| self.fault(name, kind)).ok(),
        }
    }

    /// Returns the unread fields, if there was no fault.
    pub(super) fn rest(self) -> Result<Vec<(String, Data)>, InvalidEnvelope> {
        if !self.faults.is_empty() {
            let Self { what, faults, .. } = self;
            return Err(InvalidEnvelope { what, faults });
        }
        let data = |(name, value): Field<'a>| (name.into_owned(), Data(value.text()));
        Ok(self.left().map(data).collect())
    }

    /// Returns the names of unread fields, and the faults.
    pub(super) fn ends(mut self) -> (Vec<String>, Vec<Fault>) {
        let faults = std::mem::take(&mut self.faults);
        let names = self.left().map(|(name, _)| name.into_owned());
        (names.collect(), faults)
    }
}

pub(super) fn id(value: Json<'_>) -> Result<String, &'static str> {
    match value {
        Json::Text(text) => id::written(text).ok_or("uuid_parsing"),
        _ => Err("uuid_type"),
    }
}

pub(super) fn text(value: Json<'_>) -> Result<String, &'static str> {
    match value {
        Json::Text(text) => Ok(text.into_owned()),
        _ => Err("string_type"),
    }
}

pub(super) fn timestamp(value: Json<'_>) -> Result<String, &'static str> {
    let written = match value {
        Json::Text(text) => time::read(text),
        Json::Number(text) => {
            let exact = time::number(&text);
            let number = exact.or_else(|| Some((text.parse::<f64>().ok()? * 1e6) as i128));
            number.and_then(time::number_of)
        }
        _ => return Err("datetime_type"),
    };
    written.ok_or("datetime_from_date_parsing")
}

pub(super) fn object(value: Json<'_>) -> Result<Data, &'static str> {
    match value {
        Json::Object(_) => Ok(Data(value.text())),
        _ => Err("dict_type"),
    }
}

/// Reads a boolean, in any form that Nooble4 accepts.
pub(super) fn truth(value: Json<'_>) -> Result<bool, &'static str> {
    let word = match &value {
        Json::Bool(is) => return Ok(*is),
        Json::Number(number) => match &**number {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Fields<'_> {
        Fields::read("test", text.as_bytes(), Dialect::Streams).unwrap()
    }

    #[test]
    fn what_is_left_keeps_its_order_however_fields_are_asked_for() {
        let text = r#"{"a":0,"b":1,"c":2,"d":3,"e":4,"f":5}"#;
        for (path, expected) in [
            (&[][..], "abcdef"),
            (&["a", "b", "c"], "def"),
            (&["c", "a", "e"], "bdf"),
            (&["f", "e", "a"], "bcd"),
            (&["d", "x", "c", "d", "b"], "aef"),
        ] {
            let mut fields = of(text);
            let mut before = Vec::new();
            for name in path {
                let place = "abcdef".find(name).filter(|_| !before.contains(name));
                let value = place.map(|place| Json::Number(place.to_string().into()));
                assert_eq!(fields.take(name), value, "{name} of {path:?}");
                before.push(name);
            }
            let left: Vec<_> = fields.rest().unwrap();
            let names: String = left.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, expected, "{path:?}");
            for (name, value) in left {
                let place = "abcdef".find(&name).unwrap().to_string();
                assert_eq!(value.text(), place, "{name}");
            }
        }
    }
}
