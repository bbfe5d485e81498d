//! Strict JSON: no key twice in an object, and no number that other readers may read differently.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Greatest whole number that every reader of JSON represents exactly: 2^53.
const MAX_NUMBER: u64 = 1 << 53;

/// A value without duplicate keys, whose numbers are whole, from 0 to 2^53.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON with whole numbers from 0 to 2^53")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_NUMBER {
            return Err(E::custom("a number is above 2^53"));
        }
        Ok(Value::Number(Number::from(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Strict(value))) = items.next_entry::<String, _>()? {
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key occurs twice in one object"));
            }
        }
        Ok(Value::Object(map))
    }
}

/// Reads one value. The error has the position of the fault, and no part of the text.
pub(super) fn strict(text: &[u8]) -> Result<Value, String> {
    let read = serde_json::from_slice::<Strict>(text);
    read.map(|Strict(value)| value).map_err(|error| {
        // serde_json quotes unexpected values, so only the position is shown.
        format!("line {}, column {}", error.line(), error.column())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_read_alike_is_read() {
        let text = br#"{"a":[1,9007199254740992,true,null,"x"],"b":{"a":1}}"#;
        let value = strict(text).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(text).unwrap(), value);
    }

    #[test]
    fn what_some_read_otherwise_is_refused() {
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"b":[{"a":1,"\u0061":1}]}"#,
            "1.0",
            "1e3",
            "-1",
            "9007199254740993",
            "1 2",
            "",
            "{",
            "\"\u{1}\"",
        ] {
            assert!(strict(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(strict(b"\"\xff\"").is_err());
        assert!(
            strict("[".repeat(100_000).as_bytes()).is_err(),
            "no stack overflow"
        );
        let said = strict(br#"{"secret": -5}"#).unwrap_err();
        assert!(!said.contains("secret"), "{said}");
    }
}
