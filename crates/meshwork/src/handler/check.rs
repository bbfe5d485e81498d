//! The checks of `#[handler]`: one function for each rule, so that the compiler names the rule that is broken.

use super::{BoxError, FromJob};
use crate::Job;

/// The first argument.
pub fn is_job<J: Job>() {}

/// Another argument.
pub fn is_argument<A: FromJob>() {}

/// The result.
pub fn is_output<J: Job, R: HandlerResult<Output = J::Output>>() {}

/// The future.
pub fn is_send<F: Future + Send + 'static>(future: F) {
    drop(future);
}

/// An argument for a call that is compiled and never run.
pub fn value<T>() -> T {
    unreachable!("checks are never run")
}

/// Result of a handler.
#[diagnostic::on_unimplemented(
    message = "a handler returns `Result<Output, Error>`, not `{Self}`",
    label = "no `Result<Output, Error>`",
    note = "`Output` is that of the job, as in `#[job(output = String)]`; without it, `()`"
)]
pub trait HandlerResult {
    /// The output.
    type Output;
}

impl<T, E: HandlerError> HandlerResult for Result<T, E> {
    type Output = T;
}

/// Error of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no error of a handler",
    label = "neither an error nor a text",
    note = "an error implements `std::error::Error + Send + Sync`, or is a text (`String`, `&str`) or a `JobError`"
)]
pub trait HandlerError {}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> HandlerError for E {}
