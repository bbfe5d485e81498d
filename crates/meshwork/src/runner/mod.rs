//! What executes a job: one file per runtime, one line each in `RUNTIMES`. Queues and leases
//! are the worker's.

mod handler;
mod python;
mod rhai;
mod tail;

use std::any::Any;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use handler::{Call, Context, Handler, handler};

/// The runtimes that come with Meshwork, by the script type that names their queues.
const RUNTIMES: &[(&str, Constructor)] = &[
    (ScriptType::OSIS, rhai::runner),
    (ScriptType::PYTHON, python::runner),
];

type Constructor = fn() -> Arc<dyn Runner>;

/// The answer to [`is_ping`].
pub const PONG: &str = "pong";

/// Whether this is Hero's health check, the special script `ping`, which a worker answers itself with
/// [`PONG`], whatever its script type.
#[must_use]
pub fn is_ping(job: &Job) -> bool {
    job.script.trim_ascii() == b"ping"
}

/// The runtime for scripts of this type, if one comes with Meshwork.
#[must_use]
pub fn builtin(script_type: &str) -> Option<Arc<dyn Runner>> {
    RUNTIMES
        .iter()
        .find(|(name, _)| *name == script_type)
        .map(|(_, runner)| runner())
}

/// The script types that [`builtin`] knows.
pub fn runtimes() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|(name, _)| *name)
}

/// One run of a job.
#[derive(Debug)]
pub struct Run {
    /// The record as it was claimed.
    pub job: Job,
    /// When the job's timeout ends: the runner stops the script by then and reports
    /// [`Failure::timeout`](meshwork_model::outcome::Failure::timeout).
    pub deadline: Instant,
    /// Cancelled when nobody wants the result any more (the job was stopped, or its lease is lost): the
    /// runner stops the script at once; its report is thrown away.
    pub stop: CancellationToken,
}

/// A runtime for scripts of one type, or a handler in Rust.
pub trait Runner: Send + Sync + 'static {
    /// Executes the job and says how it went. It returns soon after the deadline or the stop at the latest;
    /// a runner that does not is cut off by the worker, which then reports the timeout itself.
    fn run(&self, run: Run) -> BoxFuture<'_, Report>;
}

/// The report of a run that was stopped; nobody reads it.
fn stopped() -> Report {
    Report::failed(Failure::new(FailureKind::Script, "stopped"))
}

/// What a panic says, as far as it is text.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}
