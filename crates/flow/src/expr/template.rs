//! Templates: texts with expressions in `{{ }}`.

use meshwork_model::flow::{Position, Text};
use serde_json::Value;

use super::{ExprError, Facts, MAX_VALUE, engine, lexer, on_this_stack, value};

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Literal(&'a str),
    Expression(&'a str),
}

/// The parts of a template. An error is a sentence.
pub(super) fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        if !before.is_empty() {
            parts.push(Part::Literal(before));
        }
        let end = lexer::until_braces(after).end.ok_or_else(|| {
            "`{{` has no `}}`: close the expression, or write {{ \"{{\" }} for the braces themselves".to_owned()
        })?;
        if after[..end].trim().is_empty() {
            return Err("there is no expression between `{{` and `}}`".to_owned());
        }
        parts.push(Part::Expression(&after[..end]));
        rest = &after[end + 2..];
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest));
    }
    Ok(parts)
}

/// The text of a template. Texts stand as they are, `()` is nothing, all other values are JSON.
///
/// # Errors
///
/// As [`super::evaluate`], for each expression; a text of more than [`MAX_VALUE`] bytes.
pub fn fill_text(template: &Text, facts: &Facts<'_>) -> Result<String, ExprError> {
    if !template.text.contains("{{") {
        return Ok(template.text.clone());
    }
    let text = template.text.as_str();
    let filled = on_stack(text, template.at, || filled(text, template.at, facts))?;
    let mut out = String::new();
    value::text(&filled, &mut out);
    Ok(out)
}

/// True if only the inputs and the environment of the flow decide the text of a template.
#[must_use]
pub fn is_fixed(template: &Text) -> bool {
    let is_fixed = |part: &Part<'_>| match part {
        Part::Literal(_) => true,
        Part::Expression(expression) => lexer::names(expression).iter().all(|name| {
            matches!(name.text, "inputs" | "env")
                || name.called && !matches!(name.text, "failed" | "always")
        }),
    };
    parts(&template.text).is_ok_and(|parts| parts.iter().all(is_fixed))
}

/// A JSON value whose texts are templates. A text that is one expression alone becomes its value, of any kind.
///
/// # Errors
///
/// As [`fill_text`].
pub fn fill(value: &Value, at: Option<Position>, facts: &Facts<'_>) -> Result<Value, ExprError> {
    on_stack("", at, || fill_all(value, at, facts))
}

fn on_stack<T: Send>(
    text: &str,
    at: Option<Position>,
    work: impl FnOnce() -> Result<T, ExprError> + Send,
) -> Result<T, ExprError> {
    engine::on_stack(work).unwrap_or_else(|why| Err(ExprError::new(text, at, why)))
}

fn fill_all(value: &Value, at: Option<Position>, facts: &Facts<'_>) -> Result<Value, ExprError> {
    Ok(match value {
        Value::String(text) => filled(text, at, facts)?,
        Value::Array(items) => {
            let items = items.iter().map(|item| fill_all(item, at, facts));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|(name, value)| Ok((name.clone(), fill_all(value, at, facts)?)));
            Value::Object(entries.collect::<Result<_, ExprError>>()?)
        }
        other => other.clone(),
    })
}

fn filled(text: &str, at: Option<Position>, facts: &Facts<'_>) -> Result<Value, ExprError> {
    let parts = parts(text).map_err(|why| ExprError::new(text, at, why))?;
    let evaluate = |expression: &str| {
        on_this_stack(expression, facts).map_err(|why| ExprError::new(expression, at, why))
    };
    if let [Part::Expression(expression)] = parts[..] {
        return evaluate(expression);
    }
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => out.push_str(literal),
            Part::Expression(expression) => value::text(&evaluate(expression)?, &mut out),
        }
        if out.len() > MAX_VALUE {
            let why = format!("the text takes more than {MAX_VALUE} bytes");
            return Err(ExprError::new(text, at, why));
        }
    }
    Ok(Value::String(out))
}
