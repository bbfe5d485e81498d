//! Task: a job that a worker has claimed, from its claim to its report.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::runner::{StopReason, StopSignal};

/// How long a report is repeated while the server is away. After that the job runs again when its lease has expired.
pub(super) const REPEAT_FOR: Duration = Duration::from_secs(600);

/// A job in flight.
#[derive(Debug)]
pub(crate) struct LeasedJob<J> {
    pub(crate) job: Arc<J>,
    /// Tells the run to stop.
    pub(crate) cancel: StopSignal,
    /// Its number among the jobs in flight.
    pub(super) seq: u64,
    /// The job counts as running until its report is stored.
    pub(super) _running: TaskTrackerToken,
}

/// A run that ended well, until its result is stored.
#[derive(Debug)]
pub(crate) struct Completion<J> {
    pub(crate) task: LeasedJob<J>,
    pub(crate) output: Vec<u8>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// How long the run took.
    pub(crate) took: Duration,
    until: Instant,
    /// A call with others was refused for good: this result goes alone, so that it spoils no other one.
    pub(super) alone: bool,
}

impl<J> Completion<J> {
    pub(super) fn new(
        task: LeasedJob<J>,
        output: Vec<u8>,
        (stdout, stderr): (Vec<u8>, Vec<u8>),
        took: Duration,
    ) -> Self {
        Self {
            task,
            output,
            stdout,
            stderr,
            took,
            until: Instant::now() + REPEAT_FOR,
            alone: false,
        }
    }

    /// The size of the result in a call, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.output.len() + self.stdout.len() + self.stderr.len()
    }

    /// Whether the report is repeated after a call with it has failed.
    pub(super) fn repeats(&self, error: &meshwork_broker::Error, id: &str) -> bool {
        if self.task.cancel.reason() == Some(StopReason::Lost) {
            return false;
        }
        let repeats = error.is_temporary() && Instant::now() < self.until;
        if !repeats {
            tracing::error!(job = id, %error, "result not stored");
        }
        repeats
    }
}

/// The end of a run: with a result to be stored, or with nothing more to report.
#[derive(Debug)]
pub(super) enum RunEvent<J> {
    Completed(Completion<J>),
    Settled(LeasedJob<J>),
}

/// Frees the slot of a job in any case.
pub(super) struct SlotGuard<J> {
    task: Option<LeasedJob<J>>,
    events: UnboundedSender<RunEvent<J>>,
}

impl<J> SlotGuard<J> {
    pub(super) fn new(task: LeasedJob<J>, events: UnboundedSender<RunEvent<J>>) -> Self {
        let task = Some(task);
        Self { task, events }
    }

    pub(super) fn task(&self) -> Option<&LeasedJob<J>> {
        self.task.as_ref()
    }

    /// The run ended well: its result goes on in the place of the job.
    pub(super) fn complete(&mut self, output: Vec<u8>, logs: (Vec<u8>, Vec<u8>), took: Duration) {
        if let Some(task) = self.task.take() {
            let completion = Completion::new(task, output, logs, took);
            self.send(RunEvent::Completed(completion));
        }
    }

    fn send(&self, event: RunEvent<J>) {
        // The fetcher waits for all runs, unless its runtime is gone.
        let _ = self.events.send(event);
    }
}

impl<J> Drop for SlotGuard<J> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.send(RunEvent::Settled(task));
        }
    }
}
