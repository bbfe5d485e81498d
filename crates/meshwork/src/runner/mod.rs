//! What executes a job: one file per runtime, one entry each in `RUNTIMES`. Queues and leases
//! are the worker's.

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
        .find(|runtime| runtime.name == script_type)
        .map(|runtime| (runtime.runner)())
}

/// The script types that [`builtin`] knows.
pub fn runtimes() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|runtime| runtime.name)
}

/// How long a script that is asked to stop, or whose time is over, may take to put things in order unless
/// the worker says otherwise: half of what init systems and schedulers give a whole service.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// One run of a job.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The record as it was claimed.
    pub job: Arc<Job>,
    /// When the job's timeout ends: the runner tells the script to end, as if it were stopped, and reports
    /// [`Failure::timeout`](meshwork_model::outcome::Failure::timeout).
    pub deadline: Instant,
    /// Given when the run is to stop. Whether there is time to put things in order, and whether anybody
    /// wants the report, is a matter of the reason.
    pub stop: StopSignal,
    /// How long the script may go on after it was told that its time is over, or that somebody asked it to
    /// stop.
    pub grace: Duration,
    /// Takes in what the run says while it runs.
    pub log: LogSink,
    /// The trace that the run belongs to, and the span that what it calls is a part of.
    pub trace: Option<TraceContext>,
    /// What [`Runner::announce`] gave for it.
    pub(crate) announced: Option<Announced>,
    /// The results of the jobs that it has waited for.
    pub inputs: Inputs,
    /// The batch that the job belongs to; what is added through it is added by this run.
    pub batch: Option<Batch>,
    /// With what it submits children; none where it is no job of ours.
    pub(crate) submitter: Option<Submitter>,
}

impl Run {
    /// A run that nobody stops or listens to yet, with [`STOP_GRACE`].
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

    /// Asked for each job that is about to be run, before the first of those that were claimed together runs:
    /// a runner that takes several together knows by what it gives which ones to wait for. It never waits.
    fn announce(&self) -> Option<Announced> {
        None
    }
}

/// The report of a run that was stopped.
fn stopped() -> Report {
    Report::failed(Failure::stopped())
}

/// An error in words, with what caused it.
pub(crate) fn told(error: &(dyn std::error::Error + 'static)) -> String {
    handler::failed(error).message
}

/// What a panic says, as far as it is text.
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
