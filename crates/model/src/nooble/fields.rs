//! Reading an envelope's fields one after the other, and what was wrong with them.

use std::{fmt, vec};

use super::id;
use super::json::{Field, Json, Object};
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
///
/// They come nearly always in the order in which they are asked for: the next one is mostly the one that is wanted.
pub(super) struct Fields<'a> {
    what: &'static str,
    /// Those that stood before one that was asked for already.
    passed: Vec<Field<'a>>,
    /// Those behind it.
    ahead: vec::IntoIter<Field<'a>>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    /// The fields of a text. Of a name that comes twice, models that drop what they do not know (lists) take the
    /// first value, the others the last.
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

    /// The fields of an object within.
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

    /// Adds what was wrong within a field.
    pub(super) fn faults_of(&mut self, field: &str, faults: Vec<Fault>) {
        let within = faults.into_iter().map(|fault| fault.within(field));
        self.faults.extend(within);
    }

    /// A field's value, if it is there.
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

    /// What is left, in its order.
    fn left(self) -> impl Iterator<Item = Field<'a>> {
        self.passed.into_iter().chain(self.ahead)
    }

    /// A field that must be there, read by `read`, which gives a word for what is wrong.
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

    /// A field that may be missing; what then, `default` says.
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

    /// A field that may be missing or null.
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

    /// What is left, if nothing was wrong.
    pub(super) fn rest(self) -> Result<Vec<(String, Data)>, InvalidEnvelope> {
        if !self.faults.is_empty() {
            let Self { what, faults, .. } = self;
            return Err(InvalidEnvelope { what, faults });
        }
        let data = |(name, value): Field<'a>| (name.into_owned(), Data(value.text()));
        Ok(self.left().map(data).collect())
    }

    /// The names that are left, and what was wrong.
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

/// Yes or no, in the words that theirs take for it.
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
        for (asked, expected) in [
            (&[][..], "abcdef"),
            (&["a", "b", "c"], "def"),
            (&["c", "a", "e"], "bdf"),
            (&["f", "e", "a"], "bcd"),
            (&["d", "x", "c", "d", "b"], "aef"),
        ] {
            let mut fields = of(text);
            let mut before = Vec::new();
            for name in asked {
                let place = "abcdef".find(name).filter(|_| !before.contains(name));
                let value = place.map(|place| Json::Number(place.to_string().into()));
                assert_eq!(fields.take(name), value, "{name} of {asked:?}");
                before.push(name);
            }
            let left: Vec<_> = fields.rest().unwrap();
            let names: String = left.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, expected, "{asked:?}");
            for (name, value) in left {
                let place = "abcdef".find(&name).unwrap().to_string();
                assert_eq!(value.text(), place, "{name}");
            }
        }
    }
}
