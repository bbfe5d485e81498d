//! Errors of scripts: the message in one line, and the calls with their lines.

use std::fmt::Write as _;

use meshwork_model::outcome::{Failure, FailureKind};
use rhai::{Engine, EvalAltResult, ParseError, ParseErrorType, Position};

use super::super::JobError;
use super::nested;
use super::requests::CallFailure;

/// Calls at the beginning and at the end of a traceback.
const MAX_FRAMES: usize = 10;

/// Greatest length of a script's line in a traceback, in characters.
const MAX_LINE: usize = 200;

/// Returns the failure for a syntax error, which is permanent.
pub(super) fn syntax(error: &ParseError, source: &str, engine: &Engine) -> Failure {
    let message = format!("Syntax error: {error}");
    let message = noted(message, refused(error.err_type(), engine).as_deref());
    let mut failure = Failure::new(FailureKind::Permanent, message);
    failure.traceback = traceback(source, &[(None, error.position())]);
    failure
}

/// Returns a message with a note before its position.
fn noted(mut message: String, note: Option<&str>) -> String {
    if let Some(note) = note {
        let end = message.rfind(" (line ").unwrap_or(message.len());
        message.insert_str(end, &format!(": {note}"));
    }
    message
}

/// Returns the limit that the parser found exceeded, or what to do without a symbol that is missing on purpose.
pub(super) fn refused(kind: &ParseErrorType, engine: &Engine) -> Option<String> {
    Some(match kind {
        ParseErrorType::ExprTooDeep => {
            format!("it nests deeper than {} levels", engine.max_expr_depth())
        }
        ParseErrorType::TooManyFunctions => {
            format!("the limit is {}", engine.max_functions())
        }
        kind if kind.to_string().contains("'import'") => {
            "a script is one file; put the functions into it, and pass data with `--input @FILE`"
                .to_owned()
        }
        _ => return None,
    })
}

/// Returns the limit that a script exceeds.
fn limit(error: &EvalAltResult, engine: &Engine) -> Option<String> {
    Some(match error {
        EvalAltResult::ErrorDataTooLarge(what, _) if what.contains("string") => {
            let most = engine.max_string_size();
            format!("the limit is {most} bytes of text in one value")
        }
        EvalAltResult::ErrorDataTooLarge(what, _) if what.contains("array") => {
            let most = engine.max_array_size();
            format!("the limit is {most} elements of arrays and bytes of blobs in one value")
        }
        EvalAltResult::ErrorDataTooLarge(..) => {
            let most = engine.max_map_size();
            format!("the limit is {most} entries of maps in one value")
        }
        EvalAltResult::ErrorTooManyOperations(_) => {
            format!("the limit is {} steps", engine.max_operations())
        }
        EvalAltResult::ErrorTooManyVariables(_) => {
            format!("the limit is {} in one function", engine.max_variables())
        }
        EvalAltResult::ErrorStackOverflow(_) => super::engine::too_many_calls(engine),
        _ => return None,
    })
}

/// Returns the hint for a function that only scripts of the type `sal` have, or that these lack.
#[cfg(feature = "sal")]
fn not_found(call: &str, engine: &Engine) -> Option<String> {
    let name = call.split(' ').next()?;
    let mut functions = meshwork_sal::functions();
    let is_of_sal = functions.any(|function| function.name == name);
    let is_name = name.starts_with(|c: char| c.is_alphabetic());
    match (super::has_sal(engine), is_of_sal) {
        (false, true) => Some(format!(
            "`{name}` is a function of SAL, which scripts of the type sal have: `--type sal`"
        )),
        (true, true) => Some(format!("SAL has `{name}` with other arguments")),
        (true, false) if is_name => {
            Some("`meshwork runtime show sal` lists the functions of SAL".to_owned())
        }
        _ => None,
    }
}

#[cfg(not(feature = "sal"))]
fn not_found(_: &str, _: &Engine) -> Option<String> {
    None
}

/// Returns the failure for an error at run time.
pub(super) fn runtime(error: &EvalAltResult, source: &str, engine: &Engine) -> Failure {
    let mut frames = Vec::new();
    let (mut error, mut function) = (error, None);
    while let EvalAltResult::ErrorInFunctionCall(name, _, inner, at) = error {
        frames.push((function, *at));
        (error, function) = (inner, Some(name.as_str()));
    }
    if let EvalAltResult::ErrorRuntime(value, _) = error
        && let Some(verdict) = value.clone().try_cast::<JobError>()
    {
        return verdict.into_failure();
    }
    frames.push((function, error.position()));
    let message = match error {
        EvalAltResult::ErrorRuntime(value, at) => {
            let failed = value.clone().try_cast::<CallFailure>();
            let deep = || nested::is_deep(value).then(|| "a value that nests deeply".to_owned());
            let text = failed.map(|failed| failed.message()).or_else(deep);
            text.map(|text| format!("Runtime error: {text} ({at})"))
        }
        _ => None,
    };
    let message = message.unwrap_or_else(|| error.to_string());
    let note = match error {
        EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call, engine),
        other => limit(other, engine),
    };
    let message = noted(message, note.as_deref());
    let mut failure = Failure::new(FailureKind::Script, message);
    failure.traceback = traceback(source, &frames);
    failure
}

/// Returns the calls, the innermost last; `None` without a known position. Of many calls it has the first and the last.
fn traceback(source: &str, frames: &[(Option<&str>, Position)]) -> Option<String> {
    let mut text = String::from("Traceback (most recent call last):");
    let heading = text.len();
    let left_out = MAX_FRAMES..frames.len().saturating_sub(MAX_FRAMES);
    for (nth, (function, at)) in frames.iter().enumerate() {
        if left_out.contains(&nth) {
            if nth == left_out.start {
                let _ = write!(text, "\n  … {} more calls", left_out.len());
            }
            continue;
        }
        let Some(line) = at.line() else { continue };
        let _ = write!(text, "\n  line {line}");
        if let Some(position) = at.position() {
            let _ = write!(text, ", position {position}");
        }
        match function {
            None => {}
            Some(name) if name.starts_with("anon$") => text.push_str(", in an unnamed function"),
            Some(name) => {
                let _ = write!(text, ", in {name}");
            }
        }
        let code = source.lines().nth(line - 1).unwrap_or_default().trim();
        if !code.is_empty() {
            text.push_str("\n    ");
            text.extend(code.chars().take(MAX_LINE));
        }
    }
    (text.len() > heading).then_some(text)
}
