//! What executes a job: one file per runtime, one line each in [`builtin`]. Queues and leases are the worker's.

use futures_util::future::BoxFuture;
use meshwork_model::job::Job;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::Report;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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
