//! Options of `add_child()` in scripts of all languages: those of a job in JSON that a child has.

use meshwork_model::job::{NewChild, limits};
use meshwork_model::param::Span;
use meshwork_model::read;
use meshwork_model::sandbox::SandboxSettings;
use meshwork_model::spec::JobSpec;
use serde_json::{Map, Value};

/// Options of a child.
const OPTIONS: [&str; 9] = [
    "type", "priority", "delay", "retries", "timeout", "key", "group", "sandbox", "env",
];

/// Invalid option of a child.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum OptionError {
    /// There is no such option.
    #[error("add_child() has no option `{0}`: it takes input, {options}", options = OPTIONS.join(", "))]
    Unknown(String),
    /// The value is not allowed. The text begins with the name of the option.
    #[error("option of add_child(): {0}")]
    Value(String),
}

/// Returns a child with this script, input and options. An option that is null counts as absent.
pub(in super::super) fn child(
    script: String,
    input: Option<Vec<u8>>,
    mut options: Map<String, Value>,
) -> Result<NewChild, OptionError> {
    options.retain(|_, value| !value.is_null());
    let mut names = options.keys();
    if let Some(name) = names.find(|name| !OPTIONS.contains(&name.as_str())) {
        return Err(OptionError::Unknown(name.clone()));
    }
    let spec: JobSpec = read::from(Value::Object(options)).map_err(OptionError::Value)?;
    let profile = spec.sandbox.and_then(|it| it.0.profile);
    if spec
        .sandbox
        .is_some_and(|it| it.0 != profile.map(SandboxSettings::profile).unwrap_or_default())
    {
        let why = "sandbox: a child takes a profile alone".to_owned();
        return Err(OptionError::Value(why));
    }
    let within = |name: &str, span: Option<Span>, most_ms: u64| match span {
        Some(span) if span.millis() > most_ms => {
            let most = most_ms as f64 / 1000.0;
            let why = format!("{name}: at most {most} seconds are possible");
            Err(OptionError::Value(why))
        }
        _ => Ok(span),
    };
    let delay = within("delay", spec.delay, limits::MAX_DELAY_MS)?;
    let timeout = within("timeout", spec.timeout, limits::MAX_TIMEOUT * 1000)?;
    Ok(NewChild {
        input,
        script_type: spec.script_type.map(|it| it.0),
        group: spec.group.map(|it| it.0),
        key: spec.key,
        priority: spec.priority.map(|it| it.0),
        delay_ms: delay.map(Span::millis).filter(|ms| *ms > 0),
        timeout: timeout.map(Span::seconds),
        retries: spec.retries,
        sandbox: profile,
        env_vars: spec.env.into(),
        ..NewChild::new(script)
    })
}

#[cfg(test)]
mod tests {
    use meshwork_model::route::Priority;
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
        let units = read(json!({"delay": "90s", "timeout": "1m30s"})).unwrap();
        assert_eq!((units.delay_ms, units.timeout), (Some(90_000), Some(90)));
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
            (json!({"type": "a b"}), ["type: ", "script type"]),
            (json!({"group": 1}), ["group: ", "expected a text"]),
            (json!({"priority": "urgent"}), ["priority: ", "urgent"]),
            (json!({"delay": -1}), ["delay: ", "seconds"]),
            (json!({"delay": "soon"}), ["delay: ", "seconds"]),
            (json!({"timeout": 604_801}), ["timeout: ", "604800"]),
            (json!({"retries": 1.5}), ["retries: ", "whole number"]),
            (json!({"retries": true}), ["retries: ", "whole number"]),
            (json!({"env": {"A": 1}}), ["env.A: ", "expected a string"]),
            (
                json!({"depends_on": ["a"]}),
                ["no option `depends_on`", "it takes input, type"],
            ),
            (
                json!({"sandbox": {"memory": "1G"}}),
                ["sandbox: ", "a profile alone"],
            ),
            (json!({"delay": 316_224_001}), ["delay: ", "316224000"]),
        ] {
            let said = read(given).unwrap_err();
            assert!(names.iter().all(|name| said.contains(name)), "{said}");
        }
    }
}
