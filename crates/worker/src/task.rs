//! Task: a job in flight, from its claim to its report.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::fetched::Fetched;
use meshwork_runtime::lease::Lease;
use meshwork_runtime::{StopReason, StopSignal};

/// Longest time for which a report is retried. After that, the job runs again when its lease has expired.
pub(super) const REPEAT_FOR: Duration = Duration::from_secs(600);

/// A job in flight.
#[derive(Debug)]
pub(crate) struct LeasedJob<J> {
    pub(super) job: Arc<J>,
    pub(super) lease: Lease,
    /// Signal that cancels the run.
    pub(crate) cancel: StopSignal,
    /// Sequence number among the jobs in flight.
    pub(super) seq: u64,
    /// The job counts as running until its report is stored.
    pub(super) _running: TaskTrackerToken,
}

/// A successful run whose result is not stored yet.
#[derive(Debug)]
pub struct Completion<J> {
    pub(crate) task: LeasedJob<J>,
    /// The result.
    pub output: Vec<u8>,
    /// End of the run's stdout.
    pub stdout: Vec<u8>,
    /// End of the run's stderr.
    pub stderr: Vec<u8>,
    /// Duration of the run.
    pub took: Duration,
    until: Instant,
    /// True if a call with several results was refused permanently. This result is then sent alone, so that it affects
    /// no other.
    pub(super) alone: bool,
}

impl<J> Completion<J> {
    /// Returns the job.
    #[must_use]
    pub fn job(&self) -> &J {
        &self.task.job
    }

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

    /// Returns the size of the result in a call, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.output.len() + self.stdout.len() + self.stderr.len()
    }

    /// Returns true if the report is retried after this error.
    pub(super) fn repeats(&self, error: &meshwork_broker::Error, id: &str) -> bool {
        if self.task.cancel.reason() == Some(StopReason::Lost) {
            return false;
        }
        let repeats = error.is_repeated() && Instant::now() < self.until;
        if !repeats {
            tracing::error!(job = id, %error, "result not stored");
        }
        repeats
    }
}

/// An event of a run, for the fetcher.
#[derive(Debug)]
pub(super) enum RunEvent<J> {
    /// A job came without a claim and takes a slot.
    TakenIn,
    /// A blocking read has claimed jobs.
    Arrived(Arrival<J>),
    /// The run succeeded; its result is to be stored with others.
    Completed(Completion<J>),
    /// Nothing is left to report. With the duration of the run, if there was one.
    Settled(LeasedJob<J>, Option<Duration>),
}

/// Jobs that a blocking read of a queue has claimed.
#[derive(Debug)]
pub(super) struct Arrival<J> {
    pub(super) queue: String,
    pub(super) fetched: Fetched<J>,
    /// The jobs count as running until the fetcher has placed them.
    pub(super) running: TaskTrackerToken,
}

/// Guard that frees the slot of a job in any case.
pub(super) struct SlotGuard<J> {
    held: Option<Held<J>>,
    took: Option<Duration>,
    events: UnboundedSender<RunEvent<J>>,
}

enum Held<J> {
    Job(LeasedJob<J>),
    Result(Completion<J>),
}

impl<J> SlotGuard<J> {
    pub(super) fn new(task: LeasedJob<J>, events: UnboundedSender<RunEvent<J>>) -> Self {
        let held = Some(Held::Job(task));
        Self {
            held,
            took: None,
            events,
        }
    }

    /// Records the duration of a run that has failed.
    pub(super) fn failed(&mut self, took: Duration) {
        self.took = Some(took);
    }

    pub(super) fn task(&self) -> Option<&LeasedJob<J>> {
        match self.held.as_ref()? {
            Held::Job(task) => Some(task),
            Held::Result(completion) => Some(&completion.task),
        }
    }

    /// Records a successful run, which keeps its slot until the result is stored.
    pub(super) fn ended(
        &mut self,
        output: Vec<u8>,
        logs: (Vec<u8>, Vec<u8>),
        took: Duration,
    ) -> Option<&mut Completion<J>> {
        let Some(Held::Job(task)) = self.held.take() else {
            return None;
        };
        let completion = Completion::new(task, output, logs, took);
        match self.held.insert(Held::Result(completion)) {
            Held::Result(completion) => Some(completion),
            Held::Job(_) => None,
        }
    }

    /// Passes the result to the fetcher, which stores it with others.
    pub(super) fn hand_over(mut self) {
        match self.held.take() {
            Some(Held::Result(completion)) => self.send(RunEvent::Completed(completion)),
            held => self.held = held,
        }
    }

    fn send(&self, event: RunEvent<J>) {
        // The fetcher outlives all runs, unless its runtime is gone.
        let _ = self.events.send(event);
    }
}

impl<J> Drop for SlotGuard<J> {
    fn drop(&mut self) {
        match self.held.take() {
            Some(Held::Job(task)) => self.send(RunEvent::Settled(task, self.took)),
            Some(Held::Result(completion)) => {
                let took = Some(completion.took);
                self.send(RunEvent::Settled(completion.task, took));
            }
            None => {}
        }
    }
}
