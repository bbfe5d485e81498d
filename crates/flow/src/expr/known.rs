//! Functions and properties that an expression names and that do not exist, and names that Rhai reserves.

use rhai::{Dynamic, Engine, EvalAltResult, ParseErrorType};

use super::engine::KEYWORDS;
use super::lexer::{self, Name};

/// The properties of a job; see `JobFacts`.
const PROPERTIES: [&str; 7] = [
    "status",
    "result",
    "errors",
    "error",
    "total",
    "succeeded",
    "failed",
];

/// A value of each type, for calls that find out whether a function takes any of them.
const SAMPLES: [&str; 9] = [
    "()", "true", "1", "1.5", "\"a\"", "'a'", "[1]", "#{}", "|x| true",
];

/// The most arguments of such a call. Each more takes nine times as many calls.
const MOST_ARGUMENTS: usize = 3;

/// Returns the first function or property that does not exist, in a sentence.
pub(super) fn missing(
    text: &str,
    engine: &Engine,
    is_job: impl Fn(&str) -> bool,
) -> Option<String> {
    let names = lexer::names(text);
    names.iter().find_map(|name| {
        if name.called {
            let is_function = KEYWORDS.contains(&name.text) || is_function(engine, name.text);
            return (!is_function).then(|| no_function(name.text));
        }
        let is_own = names
            .iter()
            .any(|other| other.text == name.text && declared(text, other));
        if is_own || !is_job(name.text) {
            return None;
        }
        let property = property(text, name)?;
        (!PROPERTIES.contains(&property)).then(|| {
            format!(
                "a job has no `{property}`: `{}` has {}",
                name.text,
                PROPERTIES.join(", ")
            )
        })
    })
}

fn no_function(name: &str) -> String {
    let message = format!("there is no function `{name}`");
    match name {
        "success" | "succeeded" | "failure" | "cancelled" | "completed" | "done" => format!(
            "{message}; `failed()` is true after a failure, `always()` at all times, and a job without `if` runs after \
             a success of all that it needs"
        ),
        _ => message,
    }
}

/// True if a name at its place is that of a new variable.
fn declared(text: &str, name: &Name<'_>) -> bool {
    let before = text[..name.start].trim_end();
    let parameter = before.ends_with('|') && !before.ends_with("||");
    parameter
        || ["let", "const", "for"]
            .iter()
            .any(|word| before.ends_with(word))
}

/// The property that follows a name.
fn property<'a>(text: &'a str, name: &Name<'_>) -> Option<&'a str> {
    let rest = text[name.start + name.text.len()..].trim_start();
    let rest = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.'))?;
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let called = rest[end..].trim_start().starts_with('(');
    (end > 0 && !called).then(|| &rest[..end])
}

/// True if the engine has a function of this name for any arguments: it does not list its functions.
fn is_function(engine: &Engine, name: &str) -> bool {
    let mut calls = vec![String::new()];
    for _ in 0..=MOST_ARGUMENTS {
        if calls.iter().any(|arguments| takes(engine, name, arguments)) {
            return true;
        }
        let longer = calls.iter().flat_map(|arguments| {
            let comma = if arguments.is_empty() { "" } else { ", " };
            SAMPLES.map(|sample| format!("{arguments}{comma}{sample}"))
        });
        calls = longer.collect();
    }
    false
}

fn takes(engine: &Engine, name: &str, arguments: &str) -> bool {
    let outcome = engine.eval::<Dynamic>(&format!("{name}({arguments})"));
    match outcome.map_err(|error| *error) {
        Err(EvalAltResult::ErrorFunctionNotFound(signature, _)) => signature
            .strip_prefix(name)
            .is_none_or(|rest| !rest.trim_start().starts_with('(')),
        _ => true,
    }
}

/// The advice for a property whose name Rhai reserves.
pub(super) fn reserved(text: &str, error: &ParseErrorType) -> Option<String> {
    let word = match error {
        ParseErrorType::Reserved(word) => word.as_str(),
        ParseErrorType::PropertyExpected => KEYWORDS
            .into_iter()
            .find(|word| text.contains(&format!(".{word}")))?,
        _ => return None,
    };
    text.contains(&format!(".{word}"))
        .then(|| format!("`{word}` is a word of Rhai: write `[\"{word}\"]` instead of `.{word}`"))
}
