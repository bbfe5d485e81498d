//! Options of `add_child()` in scripts of all languages, with the names of the command's options.

use meshwork_model::job::{NewChild, limits};
use meshwork_model::route::Priority;
use serde_json::{Map, Value};

/// Invalid option of a child.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum OptionError {
    /// There is no such option.
    #[error(
        "add_child() has no option `{0}`: it takes type, input, priority, delay, retries, timeout, key, \
         group, sandbox and env"
    )]
    Unknown(String),
    /// The value is not allowed.
    #[error("the option `{name}` of add_child() is {why}")]
    Value { name: String, why: String },
}

/// Returns a child with this script, input and options. An option that is null counts as absent.
pub(in super::super) fn child(
    script: String,
    input: Option<Vec<u8>>,
    options: Map<String, Value>,
) -> Result<NewChild, OptionError> {
    let mut child = NewChild::new(script);
    child.input = input;
    for (name, value) in options {
        if value.is_null() {
            continue;
        }
        set(&mut child, &name, value).map_err(|why| match why {
            Some(why) => OptionError::Value { name, why },
            None => OptionError::Unknown(name),
        })?;
    }
    Ok(child)
}

/// Sets an option. The error names the fault; none if there is no option of this name.
fn set(child: &mut NewChild, name: &str, value: Value) -> Result<(), Option<String>> {
    match name {
        "type" => child.script_type = Some(parsed(&text(value)?)?),
        "group" => child.group = Some(parsed(&text(value)?)?),
        "key" => child.key = Some(text(value)?),
        "priority" => child.priority = Some(priority(value)?),
        "delay" => child.delay_ms = delay(&value)?,
        "timeout" => child.timeout = Some(seconds(&value)?),
        "retries" => child.retries = Some(retries(&value)?),
        "sandbox" => child.sandbox = Some(parsed(&text(value)?)?),
        "env" => child.env_vars = env(value)?,
        _ => return Err(None),
    }
    Ok(())
}

type Read<T> = Result<T, Option<String>>;

fn wrong<T>(why: impl Into<String>) -> Read<T> {
    Err(Some(why.into()))
}

fn text(value: Value) -> Read<String> {
    match value {
        Value::String(text) => Ok(text),
        _ => wrong("no text"),
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Read<T> {
    text.parse()
        .map_err(|error: T::Err| Some(format!("not possible: {error}")))
}

fn priority(value: Value) -> Read<Priority> {
    match value {
        Value::Number(level) => parsed(&level.to_string()),
        value => parsed(&text(value)?),
    }
}

/// A number that is not below nothing, and not above `most`.
fn number(value: &Value, most: f64) -> Read<f64> {
    let number = value
        .as_f64()
        .filter(|number| (0.0..=most).contains(number));
    number.ok_or_else(|| Some(format!("no number of seconds from 0 to {most}")))
}

/// In milliseconds, rounded up.
fn delay(value: &Value) -> Read<Option<u64>> {
    let ms = number(value, limits::MAX_DELAY_MS as f64 / 1000.0)? * 1000.0;
    Ok(Some(ms.ceil() as u64).filter(|ms| *ms > 0))
}

/// In whole seconds, rounded up.
fn seconds(value: &Value) -> Read<u64> {
    Ok(number(value, limits::MAX_TIMEOUT as f64)?.ceil() as u64)
}

fn retries(value: &Value) -> Read<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.map_or_else(|| wrong("no whole number from 0"), Ok)
}

fn env(value: Value) -> Read<meshwork_model::secret::EnvVars> {
    let Value::Object(map) = value else {
        return wrong("no map of names and texts");
    };
    let pair = |(name, value)| match value {
        Value::String(value) => Ok((name, value)),
        _ => wrong(format!("no map of texts: {name} is none")),
    };
    map.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(options: Value) -> Result<NewChild, String> {
        let Value::Object(options) = options else {
            panic!()
        };
        child("1".to_owned(), None, options).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_those_of_the_command() {
        let given = json!({"type": "v", "priority": "high", "delay": 0.0015, "retries": 2, "timeout": 1.5, "key": "k",
            "group": "gpu", "env": {"A": "b"}});
        let child = read(given).unwrap();
        assert_eq!(child.script_type.unwrap().as_str(), "v");
        assert_eq!((child.delay_ms, child.timeout), (Some(2), Some(2)));
        assert_eq!(
            (child.priority, child.retries),
            (Some(Priority::High), Some(2))
        );
        assert_eq!(
            (child.key.unwrap(), child.group.unwrap().to_string()),
            ("k".into(), "gpu".into())
        );
        assert_eq!(child.env_vars["A"], "b");
        let nothing = read(json!({"type": null, "delay": 0, "env": null})).unwrap();
        assert_eq!(nothing, NewChild::new("1"));
        assert_eq!(
            read(json!({"priority": 2})).unwrap().priority,
            Some(Priority::Low)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, names) in [
            (json!({"prio": 1}), ["no option `prio`", "priority"]),
            (json!({"type": "a b"}), ["`type`", "script type"]),
            (json!({"group": 1}), ["`group`", "no text"]),
            (json!({"priority": "urgent"}), ["`priority`", "urgent"]),
            (json!({"delay": -1}), ["`delay`", "from 0 to 316224000"]),
            (json!({"delay": "soon"}), ["`delay`", "seconds"]),
            (json!({"timeout": 604_801}), ["`timeout`", "604800"]),
            (json!({"retries": 1.5}), ["`retries`", "whole number"]),
            (json!({"retries": true}), ["`retries`", "whole number"]),
            (json!({"env": {"A": 1}}), ["`env`", "A is none"]),
        ] {
            let said = read(given).unwrap_err();
            assert!(names.iter().all(|name| said.contains(name)), "{said}");
        }
    }
}
