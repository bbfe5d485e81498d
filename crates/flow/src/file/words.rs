//! Options of other systems, and those of a flow's file that mean the same.

use meshwork_model::flow::distance;

/// The most letters in which a misspelt option differs from a known one.
const TYPING_ERRORS: usize = 2;

/// The options of other systems (GitHub Actions, Dagu, Argo, Airflow and the like), by the option of this file.
const SAME: [(&str, &[&str]); 20] = [
    (
        "needs",
        &[
            "after",
            "dependencies",
            "depends",
            "depends_on",
            "requires",
            "upstream",
        ],
    ),
    (
        "run",
        &[
            "cmd", "command", "exec", "execute", "file", "program", "shell", "steps", "uses",
        ],
    ),
    ("script", &["code", "inline", "source"]),
    ("type", &["executor", "language", "runner", "script_type"]),
    ("if", &["condition", "only_if", "preconditions", "when"]),
    (
        "foreach",
        &["each", "for_each", "loop", "parallel", "with_items"],
    ),
    (
        "concurrency",
        &["max_active_runs", "max_parallel", "parallelism", "workers"],
    ),
    (
        "retries",
        &[
            "attempts",
            "max_attempts",
            "max_retries",
            "retry",
            "retry_policy",
        ],
    ),
    (
        "backoff",
        &["delay", "retry_delay", "retry_interval", "retry_wait"],
    ),
    (
        "timeout",
        &["deadline", "time_limit", "timeout_minutes", "timeout_sec"],
    ),
    (
        "continue",
        &[
            "allow_failure",
            "continue_on",
            "continue_on_error",
            "continue_on_failure",
            "ignore_errors",
        ],
    ),
    ("compensates", &["compensate", "rollback", "undo", "undoes"]),
    (
        "env",
        &["environment", "environ", "env_vars", "variables", "vars"],
    ),
    ("with", &["args", "arguments", "input", "inputs"]),
    ("inputs", &["args", "arguments", "parameters", "params"]),
    ("with", &["parameters", "params"]),
    ("tags", &["labels"]),
    ("approve", &["approval", "confirm", "manual"]),
    ("jobs", &["dag", "stages", "steps", "tasks"]),
    ("wait", &["sleep"]),
];

/// The known option that is meant by an unknown one: by its meaning elsewhere, else by its spelling.
pub(super) fn meant(option: &str, known: &[&'static str]) -> Option<&'static str> {
    let option = snake(option);
    let same = SAME.iter().find(|(name, others)| {
        known.contains(name)
            && others.contains(&option.as_str())
            && !known.contains(&option.as_str())
    });
    let same = same.and_then(|(name, _)| known.iter().find(|option| *option == name));
    same.copied().or_else(|| {
        let near = known
            .iter()
            .map(|name| (distance(&option, name), *name))
            // A short name resembles too many others.
            .filter(|(distance, name)| *distance <= TYPING_ERRORS && *distance * 2 < name.len());
        near.min().map(|(_, name)| name)
    })
}

/// `dependsOn` and `depends-on` as `depends_on`.
fn snake(option: &str) -> String {
    let mut out = String::new();
    for c in option.chars() {
        match c {
            '-' | ' ' => out.push('_'),
            _ if c.is_uppercase() => {
                if !out.is_empty() {
                    out.push('_');
                }
                out.extend(c.to_lowercase());
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::read::{FLOW, JOB};
    use super::meant;

    #[test]
    fn options_of_other_systems_have_a_counterpart() {
        for (option, wanted) in [
            ("depends_on", "needs"),
            ("dependsOn", "needs"),
            ("depends-on", "needs"),
            ("command", "run"),
            ("retry", "retries"),
            ("when", "if"),
            ("continue-on-error", "continue"),
            ("timeout-minutes", "timeout"),
            ("params", "with"),
            ("neds", "needs"),
            ("foreahc", "foreach"),
        ] {
            assert_eq!(meant(option, JOB), Some(wanted), "{option}");
        }
        for (option, wanted) in [("tasks", "jobs"), ("params", "inputs"), ("steps", "jobs")] {
            assert_eq!(meant(option, FLOW), Some(wanted), "{option}");
        }
        for option in ["colour", "x", "on"] {
            assert_eq!(meant(option, JOB), None, "{option}");
        }
    }
}
