//! Errors of scripts: the message in one line, and the calls with their lines.

use std::fmt::Write as _;

use meshwork_model::outcome::{Failure, FailureKind};
use rhai::{EvalAltResult, ParseError, Position};

use super::super::JobError;
use super::requests::CallFailure;

/// Greatest length of a script's line in a traceback, in characters.
const MAX_LINE: usize = 200;

/// Returns the failure for a syntax error, which is permanent.
pub(super) fn syntax(error: &ParseError, source: &str) -> Failure {
    let mut failure = Failure::new(FailureKind::Permanent, format!("Syntax error: {error}"));
    failure.traceback = traceback(source, &[(None, error.position())]);
    failure
}

/// Returns the failure for an error at run time.
pub(super) fn runtime(error: &EvalAltResult, source: &str) -> Failure {
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
            failed.map(|failed| format!("Runtime error: {} ({at})", failed.message()))
        }
        _ => None,
    };
    let message = message.unwrap_or_else(|| error.to_string());
    let mut failure = Failure::new(FailureKind::Script, message);
    failure.traceback = traceback(source, &frames);
    failure
}

/// Returns the calls, the innermost last; `None` without a known position.
fn traceback(source: &str, frames: &[(Option<&str>, Position)]) -> Option<String> {
    let mut text = String::from("Traceback (most recent call last):");
    let heading = text.len();
    for (function, at) in frames {
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
