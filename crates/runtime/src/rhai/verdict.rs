//! Verdicts of a script: functions that end it, as `throw` does.

use rhai::{Dynamic, EvalAltResult, FuncRegistration, Module, Position};

use super::super::JobError;
use super::super::verdict::pause;

type Ends = Result<Dynamic, Box<EvalAltResult>>;

/// Returns the module with `Permanent(text)`, `Retry()`, `Retry(seconds)`, `Retry(seconds, text)`, `Snooze(seconds)`
/// and `Discard(text)`.
pub(super) fn functions() -> Module {
    let mut module = Module::new();
    let permanent = |text: &str| ends(JobError::permanent(text));
    FuncRegistration::new("Permanent").set_into_module(&mut module, permanent);
    let discard = |text: &str| ends(JobError::discard(text));
    FuncRegistration::new("Discard").set_into_module(&mut module, discard);
    let retry = || ends(JobError::retry("retry"));
    FuncRegistration::new("Retry").set_into_module(&mut module, retry);
    let retry = |after: f64| retry_after(after, "retry");
    FuncRegistration::new("Retry").set_into_module(&mut module, retry);
    let retry = |after: i64| retry_after(after as f64, "retry");
    FuncRegistration::new("Retry").set_into_module(&mut module, retry);
    let retry = |after: f64, text: &str| retry_after(after, text);
    FuncRegistration::new("Retry").set_into_module(&mut module, retry);
    let retry = |after: i64, text: &str| retry_after(after as f64, text);
    FuncRegistration::new("Retry").set_into_module(&mut module, retry);
    FuncRegistration::new("Snooze").set_into_module(&mut module, snooze);
    let whole = |after: i64| snooze(after as f64);
    FuncRegistration::new("Snooze").set_into_module(&mut module, whole);
    module
}

fn retry_after(after: f64, text: &str) -> Ends {
    ends(JobError::retry_after(pause(after)?, text))
}

fn snooze(after: f64) -> Ends {
    ends(JobError::snooze(pause(after)?))
}

fn ends(verdict: JobError) -> Ends {
    let value = Dynamic::from(verdict);
    Err(EvalAltResult::ErrorRuntime(value, Position::NONE).into())
}
