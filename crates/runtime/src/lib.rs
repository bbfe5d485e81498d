//! Runtimes that execute jobs, each with one file and one entry in [`mod@builtin`]. Queues and leases are the worker's.

mod action;
mod announced;
#[cfg(feature = "scripts")]
mod app;
#[cfg(feature = "scripts")]
mod blocking;
mod builtin;
#[cfg(feature = "scripts")]
mod cache;
mod check;
mod children;
pub mod clock;
mod confinement;
mod host_memory;
mod info;
mod inputs;
pub mod lease;
pub mod log;
mod objects;
mod policy;
#[cfg(feature = "scripts")]
mod process;
#[cfg(feature = "scripts")]
mod program;
#[cfg(feature = "scripts")]
mod python;
#[cfg(feature = "scripts")]
mod requests;
#[cfg(feature = "scripts")]
pub mod rhai;
#[cfg(feature = "sal")]
mod sal;
#[cfg(feature = "scripts")]
mod sandbox;
#[cfg(feature = "scripts")]
mod scripted;
#[cfg(feature = "scripts")]
mod start;
mod stop;
#[cfg(feature = "scripts")]
mod v;
mod verdict;
#[cfg(feature = "scripts")]
mod workdir;

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Extensions;
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, Report};
use meshwork_model::sandbox::Usage;
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;

pub use action::{
    ActionCallError, ActionCaller, ActionIds, ActionReply, ActionRequest, CallActions,
    CheckedDelivery, ServiceFailure,
};
pub use announced::Announced;
#[cfg(feature = "scripts")]
pub use app::{App, AppCommand, AppError, AppOptions, Task, TaskSchedule};
pub use builtin::{builtin, check, endings, runtimes, type_of_file};
pub use check::{ScriptError, SourcePosition};
pub use children::{AddChild, AddChildError, add_child};
pub use confinement::Confinement;
pub use info::{RuntimeFunction, RuntimeInfo};
pub use inputs::{InputError, Inputs};
use lease::Lease;
use log::LogSink;
pub use objects::{ObjectError, ObjectRequest, ObjectStore};
pub use policy::{CannotConfine, NoLauncher, NoPolicy, SandboxPaths, SandboxPolicy};
#[cfg(feature = "scripts")]
pub use program::{InterpreterError, interpreter};
#[cfg(feature = "scripts")]
pub use python::python_at;
#[cfg(feature = "scripts")]
pub use requests::{ActionDelivery, ActionFault, ActionMessage, CALLS_VARIABLE, RunAnswer, ask};
#[cfg(feature = "scripts")]
pub use sandbox::{SandboxHost, adopt_orphans, sandbox_host};
#[cfg(feature = "scripts")]
pub use start::init;
pub use stop::{StopReason, StopSignal};
pub use verdict::{JobError, failure_of};

/// The answer to the script `ping`; see [`is_ping`].
pub const PONG: &str = "pong";

/// Returns true for Hero's health check: the script `ping`, which a worker answers with [`PONG`], for any script type.
#[must_use]
pub fn is_ping(job: &Job) -> bool {
    job.script.trim_ascii() == b"ping"
}

/// Default grace of a script after a cancel request or its timeout: half of the time that init systems give a service.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// One run of a job.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The claimed job.
    pub job: Arc<Job>,
    /// End of the job's timeout: the runtime signals the script, as for a cancel, and reports
    /// [`Failure::timeout`](meshwork_model::outcome::Failure::timeout).
    pub deadline: Instant,
    /// Cancel signal of the run. Its reason decides whether the script has a grace period and the report is used.
    pub stop: StopSignal,
    /// Grace of the script after its timeout or a cancel request.
    pub grace: Duration,
    /// Sandbox of the run, if it is a process.
    pub confinement: Confinement,
    /// Receives the output of the run.
    pub log: LogSink,
    /// Trace of the run, and the parent span of its calls.
    pub trace: Option<TraceContext>,
    /// Result of [`Runtime::announce`] for this job.
    pub announced: Option<Announced>,
    /// Results of the job's prerequisites.
    pub inputs: Inputs,
    /// Values of the worker for handlers, by type.
    pub extensions: Extensions,
    /// Adds children; `None` for jobs of other systems.
    pub child_adder: Option<Arc<dyn AddChild>>,
    /// Resources that its processes used, set by the runtime at their end.
    pub usage: Arc<OnceLock<Usage>>,
    /// Sends actions to services; nothing for jobs of Bananas.
    pub caller: ActionCaller,
    /// Objects that scripts store; `None` for jobs of other systems.
    pub objects: Option<Arc<dyn ObjectStore>>,
    /// Name of the context whose worker runs it. Contexts share no cache.
    pub tenant: String,
    /// Lease of the job, which has to hold at the start.
    pub lease: Lease,
}

impl Run {
    /// Creates a run without a cancel signal, confinement or reader of its log, with [`STOP_GRACE`].
    #[must_use]
    pub fn new(job: Arc<Job>, deadline: Instant) -> Self {
        let log = LogSink::new(job.env_vars.secrets());
        let (trace, _) = job.trace();
        Self {
            job,
            deadline,
            stop: StopSignal::default(),
            grace: STOP_GRACE,
            confinement: Confinement::default(),
            log,
            trace,
            announced: None,
            inputs: Inputs::default(),
            extensions: Extensions::new(),
            child_adder: None,
            usage: Arc::default(),
            caller: ActionCaller::default(),
            objects: None,
            tenant: String::new(),
            lease: Lease::default(),
        }
    }

    /// Returns a run for a program that the worker starts before the script.
    #[cfg(feature = "scripts")]
    fn beside(&self) -> Self {
        Self {
            stop: self.stop.clone(),
            grace: self.grace,
            confinement: self.confinement.clone(),
            log: self.log.clone(),
            tenant: self.tenant.clone(),
            lease: self.lease.clone(),
            ..Self::new(Arc::clone(&self.job), self.deadline)
        }
    }
}

/// A runtime for scripts of one type, or a handler in Rust.
pub trait Runtime: Send + Sync + 'static {
    /// Executes a job and returns its report. It has to return soon after the grace that follows the deadline or a
    /// cancel signal. Otherwise the worker aborts it and reports the timeout or cancellation itself.
    fn run(&self, run: Run) -> BoxFuture<'_, Report>;

    /// Checks that runs can start here. A worker calls it at its start, and before it claims again after a run that was
    /// not started ([`FailureKind::NotStarted`](meshwork_model::outcome::FailureKind::NotStarted)).
    ///
    /// # Errors
    /// The reason why no run can start.
    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns true if runs start processes, which get the sandbox of [`Run::confinement`]. Default: false.
    fn starts_processes(&self) -> bool {
        false
    }

    /// Describes the runtime on this host. Default: a part of the worker's program, and the reason for which
    /// [`Runtime::probe`] fails.
    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            RuntimeInfo::new("part of the program").missing(self.probe().await.err())
        })
    }

    /// Called for each job of a claim before the first of them runs. It tells a runtime that groups jobs how many to
    /// expect. Does not block.
    fn announce(&self) -> Option<Announced> {
        None
    }
}

/// Returns the report of a cancelled run.
#[cfg(feature = "scripts")]
fn stopped() -> Report {
    Report::failed(Failure::stopped())
}

/// Returns the message of a panic, if it is text.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// Returns the output of a run as JSON: text that is not JSON becomes a string. `None` for other bytes.
pub fn as_json(output: &[u8]) -> Option<String> {
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
