//! Runtimes that execute jobs: one file and one entry in `RUNTIMES` each. Queues and leases belong to the worker.

mod check;
mod handler;
mod inputs;
pub mod log;
mod many;
mod process;
mod program;
mod python;
pub(crate) mod rhai;
mod sandbox;
mod stop;
mod submit;
mod verdict;
mod workdir;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, Report};
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;

use crate::Batch;
pub use check::{Place, ScriptError, check};
pub(crate) use handler::LOST_GRACE;
pub use handler::{Call, Context, Handler, handler};
pub use inputs::{InputError, Inputs};
use log::LogSink;
pub use many::{Announced, Calls, GroupHandler, Many, group_handler};
pub use program::{InterpreterError, interpreter};
pub use sandbox::init;
pub use stop::{StopReason, StopSignal};
pub use submit::SubmitError;
pub(crate) use submit::Submitter;
pub use verdict::JobError;

/// The runtimes that come with Meshwork.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: ScriptType::OSIS,
        runner: rhai::runner,
        check: rhai::check,
    },
    Runtime {
        name: ScriptType::PYTHON,
        runner: python::runner,
        check: python::check,
    },
    Runtime {
        name: ScriptType::EXEC,
        runner: program::runner,
        check: program::check,
    },
];

struct Runtime {
    /// The script type that names its queues.
    name: &'static str,
    runner: fn() -> Arc<dyn Runner>,
    check: check::Checker,
}

/// The answer to [`is_ping`].
pub const PONG: &str = "pong";

/// True for Hero's health check: the script `ping`, which a worker answers itself with [`PONG`], whatever its script
/// type.
#[must_use]
pub fn is_ping(job: &Job) -> bool {
    job.script.trim_ascii() == b"ping"
}

/// The runtime for scripts of this type, if one comes with Meshwork.
#[must_use]
pub fn builtin(script_type: &str) -> Option<Arc<dyn Runner>> {
    RUNTIMES
        .iter()
        .find(|runtime| runtime.name == script_type)
        .map(|runtime| (runtime.runner)())
}

/// The script types that [`builtin`] knows.
pub fn runtimes() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|runtime| runtime.name)
}

/// Default grace of a script after its stop signal or timeout: half of the time that init systems give a service.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// One run of a job.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The record as it was claimed.
    pub job: Arc<Job>,
    /// End of the job's timeout: the runner signals the script, as for a cancel, and reports
    /// [`Failure::timeout`](meshwork_model::outcome::Failure::timeout).
    pub deadline: Instant,
    /// Signals that the run has to end. Its reason decides whether the script gets a grace period and the report is
    /// used.
    pub stop: StopSignal,
    /// Grace of the script after its timeout or a cancel request.
    pub grace: Duration,
    /// Receives the output of the run.
    pub log: LogSink,
    /// Trace of the run, and the parent span of its calls.
    pub trace: Option<TraceContext>,
    /// The result of [`Runner::announce`] for this job.
    pub(crate) announced: Option<Announced>,
    /// The results of the jobs that it has waited for.
    pub inputs: Inputs,
    /// The batch that the job belongs to; what is added through it is added by this run.
    pub batch: Option<Batch>,
    /// Submits children; none for jobs of other systems.
    pub(crate) submitter: Option<Submitter>,
}

impl Run {
    /// A run without a stop signal or reader of its log, with [`STOP_GRACE`].
    #[must_use]
    pub fn new(job: Arc<Job>, deadline: Instant) -> Self {
        let log = LogSink::new(job.env_vars.secrets());
        let (trace, _) = job.trace();
        Self {
            job,
            deadline,
            stop: StopSignal::default(),
            grace: STOP_GRACE,
            log,
            trace,
            announced: None,
            inputs: Inputs::default(),
            batch: None,
            submitter: None,
        }
    }
}

/// A runtime for scripts of one type, or a handler in Rust.
pub trait Runner: Send + Sync + 'static {
    /// Executes the job and says how it went. It returns soon after the deadline or the stop, and the grace
    /// after it, at the latest; a runner that does not is cut off by the worker, which then reports the
    /// timeout or the stop itself.
    fn run(&self, run: Run) -> BoxFuture<'_, Report>;

    /// Called for each job of a claim before the first of them runs. A runner that groups jobs learns so for which to
    /// wait. Never blocks.
    fn announce(&self) -> Option<Announced> {
        None
    }
}

/// The report of a run that was stopped.
fn stopped() -> Report {
    Report::failed(Failure::stopped())
}

/// The error's message with its causes.
pub(crate) fn error_message(error: &(dyn std::error::Error + 'static)) -> String {
    handler::failed(error).message
}

/// The message of a panic, if it is text.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// The output of a run as JSON: text that is not JSON becomes a string. None if there is no text.
pub(crate) fn as_json(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    Some(match is_json {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    })
}
