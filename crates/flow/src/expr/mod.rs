//! Expressions and templates of a flow: Rhai over the results of jobs that have ended, the inputs and the environment.
//!
//! An expression has no clock, no randomness and no side effects, at most [`MAX_OPERATIONS`] operations and values of at
//! most [`MAX_VALUE`] bytes: whoever repeats it gets the same value. A template is a text with expressions in `{{ }}`.

mod check;
mod engine;
mod known;
mod lexer;
mod matrix;
mod template;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use meshwork_model::flow::limits::MAX_ITEMS;
use meshwork_model::flow::{Position, Text};
use rhai::{Dynamic, EvalAltResult, Scope};
use serde_json::{Map, Value, json};

pub use check::{Fault, check, hints, output_names};
use engine::Marked;
use meshwork_runtime::rhai::value::{MAX_NESTED, dynamic};
pub use template::{fill, fill_text, is_fixed};
pub use value::output_value;

/// The most operations of one expression, as Rhai counts them.
pub const MAX_OPERATIONS: u64 = 100_000;
/// The most bytes of a value.
pub const MAX_VALUE: usize = 1024 * 1024;

/// The values that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// The ancestors of the job, which have ended, by name.
    pub jobs: BTreeMap<&'a str, JobFacts>,
    /// The inputs of the flow.
    pub inputs: BTreeMap<&'a str, Value>,
    /// The environment of the flow.
    pub env: BTreeMap<String, String>,
    /// The item of a `foreach` and its index.
    pub item: Option<(Value, usize)>,
    /// The value of `failed()`: an ancestor failed or was cancelled.
    pub failed: bool,
}

/// A job that has ended, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFacts {
    /// `finished`, `error` or `skipped`.
    pub status: &'static str,
    /// Its result; of a `foreach` the list of its items' results, `null` where an item failed; `{}` if it was skipped.
    pub result: Value,
    /// The errors of its items by index, `null` where an item succeeded; of another job a list of one.
    pub errors: Vec<Option<String>>,
    /// The number of its items that succeeded; of another job 1 or 0.
    pub succeeded: usize,
    /// The number of its items that failed; of another job 1 or 0.
    pub failed: usize,
}

impl JobFacts {
    fn json(&self) -> Value {
        json!({
            "status": self.status,
            "result": self.result,
            "errors": self.errors,
            "error": self.errors.iter().flatten().next(),
            "total": self.succeeded + self.failed,
            "succeeded": self.succeeded,
            "failed": self.failed,
        })
    }
}

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// The place of the expression in the flow's file.
    pub at: Option<Position>,
    /// The error, and the expression that has it.
    pub message: String,
}

/// The longest part of an expression that an error repeats, in characters.
const SHOWN: usize = 80;

impl ExprError {
    fn new(expression: &str, at: Option<Position>, why: impl std::fmt::Display) -> Self {
        let mut shown: String = expression.trim().chars().take(SHOWN).collect();
        if shown.len() < expression.trim().len() {
            shown.push('…');
        }
        let message = format!("the expression `{shown}`: {why}");
        Self { at, message }
    }
}

/// The value of an expression.
///
/// # Errors
///
/// An expression that cannot be read, that fails, or whose value has no form in JSON or is too large.
pub fn evaluate(expression: &Text, facts: &Facts<'_>) -> Result<Value, ExprError> {
    let (text, at) = (expression.text.as_str(), expression.at);
    let outcome = engine::on_stack(|| on_this_stack(text, facts));
    outcome
        .and_then(|value| value)
        .map_err(|why| ExprError::new(text, at, why))
}

/// The answer to an `if`.
///
/// # Errors
///
/// As [`evaluate`], and a value that is neither true nor false.
pub fn condition(expression: &Text, facts: &Facts<'_>) -> Result<bool, ExprError> {
    match evaluate(expression, facts)? {
        Value::Bool(truth) => Ok(truth),
        other => {
            let why = format!(
                "its value is {}, but `if` needs true or false",
                kind(&other)
            );
            Err(ExprError::new(&expression.text, expression.at, why))
        }
    }
}

/// The items of a `foreach`: those of a list, the entries of a map as `{key, value}`, or the numbers below a whole number.
///
/// # Errors
///
/// As [`evaluate`], a value of another kind, and more than [`MAX_ITEMS`] items.
pub fn items(expression: &Text, facts: &Facts<'_>) -> Result<Vec<Value>, ExprError> {
    let error = |why: String| ExprError::new(&expression.text, expression.at, why);
    let many = |count: &dyn std::fmt::Display| {
        error(format!(
            "it has {count} items: at most {MAX_ITEMS} are allowed"
        ))
    };
    let value = evaluate(expression, facts)?;
    let items = match value {
        Value::Array(items) => items,
        Value::Object(entries) => {
            let entry = |(key, value)| json!({"key": Value::String(key), "value": value});
            entries.into_iter().map(entry).collect()
        }
        Value::Number(number) => {
            let count = number
                .as_u64()
                .and_then(|count| usize::try_from(count).ok());
            match count {
                Some(count) if count <= MAX_ITEMS => (0..count).map(Value::from).collect(),
                Some(count) => return Err(many(&count)),
                None => {
                    return Err(error(format!(
                        "its value is {number}, which is no number of items"
                    )));
                }
            }
        }
        other => {
            let kind = kind(&other);
            return Err(error(format!(
                "its value is {kind}, but `foreach` needs a list, a map or a whole number"
            )));
        }
    };
    if items.len() > MAX_ITEMS {
        return Err(many(&items.len()));
    }
    Ok(items)
}

/// True if an `if` checks for failures: then it is evaluated although a need has failed.
#[must_use]
pub fn asks_for_failure(expression: &Text) -> bool {
    let names = lexer::names(&expression.text);
    names
        .iter()
        .any(|name| name.called && matches!(name.text, "failed" | "always"))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => format!("{truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

/// Evaluates on a stack that is large enough. An error is a sentence.
fn on_this_stack(text: &str, facts: &Facts<'_>) -> Result<Value, String> {
    let engine = engine::new(facts.failed);
    let mut scope = scope(text, facts)?;
    let marked = Marked::new(text, |name| facts.jobs.contains_key(name));
    let ast = marked.compile(&engine, &scope).map_err(|error| {
        let error = EvalAltResult::from(error);
        described(&marked, text, &error)
    })?;
    let value = engine
        .eval_ast_with_scope::<Dynamic>(&mut scope, &ast)
        .map_err(|error| described(&marked, text, &error))?;
    value::json(&value).map_err(|error| error.to_string())
}

fn described(marked: &Marked, text: &str, error: &EvalAltResult) -> String {
    let message = engine::message(error);
    match marked.place(text, error.position()) {
        Some((1, column)) => format!("{message} (character {column})"),
        Some((line, column)) => format!("{message} (line {line}, character {column})"),
        None => message,
    }
}

/// The values that an expression names.
fn scope(text: &str, facts: &Facts<'_>) -> Result<Scope<'static>, String> {
    let mut scope = Scope::new();
    let mut put = |name: String, value: &Value, shown: &str| {
        let too_deep = || format!("{shown} is nested more than {MAX_NESTED} levels deep");
        let value = dynamic(value, 0).ok_or_else(too_deep)?;
        scope.push_constant_dynamic(name, value);
        Ok::<(), String>(())
    };
    let used: std::collections::BTreeSet<&str> =
        lexer::names(text).iter().map(|name| name.text).collect();
    for (name, job) in facts.jobs.iter().filter(|(name, _)| used.contains(*name)) {
        put(
            engine::marked(name),
            &job.json(),
            &format!("the result of `{name}`"),
        )?;
    }
    if used.contains("inputs") {
        let inputs = facts
            .inputs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        put(
            "inputs".to_owned(),
            &Value::Object(inputs.collect()),
            "`inputs`",
        )?;
    }
    if used.contains("env") {
        let env = facts
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()));
        put(
            "env".to_owned(),
            &Value::Object(env.collect::<Map<_, _>>()),
            "`env`",
        )?;
    }
    if let Some((item, index)) = &facts.item {
        put("item".to_owned(), item, "`item`")?;
        put("index".to_owned(), &Value::from(*index), "`index`")?;
    }
    Ok(scope)
}
