//! Inputs of a flow: those given when it is submitted take the place of the defaults in its plan.

use std::collections::BTreeMap;

use meshwork_model::flow::Plan;
use meshwork_model::number;
use serde_json::Value;
use serde_json::value::RawValue;

/// The value of an input, as it was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// A text, as `--set name=value` gives it. Where the default is a number, bool, list or map, the text is JSON.
    Text(String),
    /// A JSON value.
    Json(Value),
}

/// The reason why an input is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The flow has no such input.
    #[error("the flow `{flow}` has no input `{name}`; it has: {known}")]
    Unknown {
        /// The flow.
        flow: String,
        /// The input.
        name: String,
        /// The inputs of the flow.
        known: String,
    },
    /// The value is of another kind than the default.
    #[error("the input `{name}` is {wanted} by default: give {wanted}, not {found}")]
    Kind {
        /// The input.
        name: String,
        /// The kind of the default.
        wanted: &'static str,
        /// The kind of the value.
        found: &'static str,
    },
    /// A number has more digits than expressions hold.
    #[error(
        "the input `{name}` has the number {number}, which 64 bits cannot hold with all its digits: give a text in quotes"
    )]
    Number {
        /// The input.
        name: String,
        /// The number.
        number: String,
    },
    /// The inputs are not a JSON object.
    #[error("the inputs are no JSON object: {0}")]
    Json(String),
    /// An input without a default was not given.
    #[error("the flow `{flow}` needs the input `{name}`: give it with `--set {name}=VALUE`")]
    Missing {
        /// The flow.
        flow: String,
        /// The input.
        name: String,
    },
}

/// Puts the given inputs into a plan. On an error the plan is as before.
///
/// # Errors
///
/// An input that the flow does not have, of another kind than its default, that is missing, or with a number that 64 bits
/// cannot hold with all its digits.
pub fn set_inputs(
    plan: &mut Plan,
    given: impl IntoIterator<Item = (String, Given)>,
) -> Result<(), InputError> {
    let mut inputs = plan.inputs.clone();
    for (name, value) in given {
        let Some(default) = inputs.get(&name) else {
            let known: Vec<&str> = plan.inputs.keys().map(String::as_str).collect();
            let (flow, known) = (plan.name.clone(), known.join(", "));
            return Err(InputError::Unknown { flow, name, known });
        };
        let value = match value {
            Given::Json(value) => value,
            Given::Text(text) if default.is_null() || default.is_string() => Value::String(text),
            Given::Text(text) => match number::read(&text) {
                Ok(_) => exact(&name, &text)?,
                Err(_) => Value::String(text),
            },
        };
        exact(&name, &value.to_string())?;
        if !default.is_null() && kind(default) != kind(&value) {
            let (wanted, found) = (kind(default), kind(&value));
            return Err(InputError::Kind {
                name,
                wanted,
                found,
            });
        }
        inputs.insert(name, value);
    }
    if let Some((name, _)) = inputs.iter().find(|(_, value)| value.is_null()) {
        let (flow, name) = (plan.name.clone(), name.clone());
        return Err(InputError::Missing { flow, name });
    }
    plan.inputs = inputs;
    Ok(())
}

/// Reads the inputs of a JSON object.
///
/// # Errors
///
/// The text is no JSON object, or an input has a number that 64 bits cannot hold with all its digits.
pub fn parse_inputs(json: &[u8]) -> Result<Vec<(String, Given)>, InputError> {
    // Some editors write a byte order mark.
    let json = json.strip_prefix("\u{feff}".as_bytes()).unwrap_or(json);
    let inputs: BTreeMap<String, &RawValue> =
        serde_json::from_slice(json).map_err(|error| InputError::Json(error.to_string()))?;
    let given = |(name, value): (String, &RawValue)| {
        let value = exact(&name, value.get())?;
        Ok((name, Given::Json(value)))
    };
    inputs.into_iter().map(given).collect()
}

/// Reads the value of an input, all of whose numbers have to be exact.
fn exact(name: &str, json: &str) -> Result<Value, InputError> {
    if let Some(number) = number::first_inexact(json) {
        let (name, number) = (name.to_owned(), number.to_owned());
        return Err(InputError::Number { name, number });
    }
    serde_json::from_str(json).map_err(|error| InputError::Json(error.to_string()))
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan() -> Plan {
        let mut plan = Plan::new("f");
        for (name, value) in [
            ("day", json!("today")),
            ("limit", json!(3)),
            ("who", Value::Null),
        ] {
            plan.inputs.insert(name.to_owned(), value);
        }
        plan
    }

    fn set(given: &[(&str, Given)]) -> Result<Value, String> {
        let mut plan = plan();
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        set_inputs(&mut plan, given).map_err(|error| error.to_string())?;
        Ok(json!(plan.inputs))
    }

    #[test]
    fn inputs_take_the_place_of_defaults() {
        let text = |text: &str| Given::Text(text.to_owned());
        let all = set(&[("who", text("7")), ("limit", text("5"))]);
        assert_eq!(all, Ok(json!({"day": "today", "limit": 5, "who": "7"})));
        let json = Given::Json(json!([1]));
        assert_eq!(set(&[("who", json)]).unwrap()["who"], json!([1]));
        let read = parse_inputs(br#"{"limit": 1e2, "who": [0.5]}"#).unwrap();
        assert_eq!(read[1], ("who".to_owned(), Given::Json(json!([0.5]))));
        let refused = parse_inputs(br#"{"limit": 2, "who": {"a": [1, 1e400]}}"#).unwrap_err();
        assert!(refused.to_string().contains("`who` has the number 1e400"));
        assert!(parse_inputs(b"[1]").is_err());
        for (given, says) in [
            (
                vec![("limit", text("18446744073709551615"))],
                "`limit` has the number 18446744073709551615",
            ),
            (
                vec![("who", Given::Json(json!([u64::MAX])))],
                "`who` has the number 18446744073709551615",
            ),
            (
                vec![],
                "needs the input `who`: give it with `--set who=VALUE`",
            ),
            (
                vec![("limit", text("many"))],
                "`limit` is a number by default: give a number, not a text",
            ),
            (
                vec![("day", Given::Json(json!(1)))],
                "`day` is a text by default",
            ),
            (
                vec![("nobody", text("x"))],
                "has no input `nobody`; it has: day, limit, who",
            ),
        ] {
            let said = set(&given).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
