//! Answers of functions.

use std::fmt::Display;

use rhai::{EvalAltResult, Position};

/// Answer of a function, or the error that it throws.
pub(crate) type Answer<T> = Result<T, Box<EvalAltResult>>;

/// Returns the error that a script can catch.
pub(crate) fn thrown(message: impl Display) -> Box<EvalAltResult> {
    let text = message.to_string().into();
    EvalAltResult::ErrorRuntime(text, Position::NONE).into()
}
