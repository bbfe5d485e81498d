//! Collects the results of a series: polls the statuses of all jobs together, and fetches results in the order of the
//! inputs.

use std::ops::Range;
use std::time::Duration;

use meshwork::Client;
use meshwork_broker::MAX_ITEMS;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use meshwork_model::time::duration_of;
use tokio::time::Instant;

use super::Work;
use super::results::Results;
use crate::args::input::Input;
use crate::ephemeral_worker::EphemeralWorker;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, Progress};
use crate::persist::persist;

/// Shortest and longest pause between two polls.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// Ratio of a pause to the poll before it, so that most of the server's time is free for jobs.
const REST: u32 = 4;
/// Greatest number of results fetched at once; each has up to 16 MiB.
const FETCHED: usize = 16;

/// Counts of a series.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) finished: usize,
    pub(super) failed: usize,
}

/// Jobs of a series that have not all ended.
pub(super) struct Collection<'a> {
    client: &'a Client,
    ids: &'a [JobId],
    inputs: &'a [Input],
    patience: Duration,
    /// By input: true if the job has ended.
    ended: Vec<bool>,
    /// The same at the first look: these jobs may be those of an earlier command.
    before: Vec<bool>,
    /// Inputs whose jobs have not ended, in order.
    pending: Vec<usize>,
    /// True if the jobs enter a queue at once, without prerequisites.
    queued: bool,
    /// Lowest number of claimed jobs in any poll. A higher number later proves that a worker has claimed a job.
    fewest: Option<usize>,
    /// Index of the first input whose result is not printed.
    next: usize,
    tally: Tally,
}

impl<'a> Collection<'a> {
    pub(super) fn new(work: &Work<'a>, patience: Duration) -> Self {
        let all = work.inputs.len();
        Self {
            client: work.client,
            ids: &work.series.ids,
            inputs: work.inputs,
            patience,
            ended: vec![false; all],
            before: Vec::new(),
            pending: (0..all).collect(),
            queued: work.queued,
            fewest: None,
            next: 0,
            tally: Tally::default(),
        }
    }

    /// Waits for all jobs and prints the results.
    pub(super) async fn collect(
        mut self,
        ephemeral: &mut EphemeralWorker,
        results: &mut Results,
        out: &mut Out,
    ) -> Result<Tally, CommandError> {
        let mut progress = Progress::new(self.ids.len());
        let (mut last, mut pause) = (Instant::now(), PAUSE.0);
        loop {
            ephemeral.poll().await?;
            let looking = Instant::now();
            let before = self.pending.len();
            self.look(ephemeral).await?;
            progress.show(self.ids.len() - self.pending.len());
            self.print(ephemeral, results, &progress, out).await?;
            if self.next == self.ids.len() {
                // Workers may have been faster than the first look.
                ephemeral.seen(self.queued, false);
                return Ok(self.tally);
            }
            if self.pending.len() < before {
                (last, pause) = (looking, PAUSE.0);
            } else if last.elapsed() > self.patience {
                return Err(nothing_ends(before, self.patience));
            }
            tokio::time::sleep(pause.max(looking.elapsed() * REST)).await;
            pause = PAUSE.1.min(pause * 2);
        }
    }

    /// Polls which jobs have ended. A deleted job counts as ended.
    async fn look(&mut self, ephemeral: &mut EphemeralWorker) -> Result<(), CommandError> {
        let mut waiting = 0;
        for chunk in self.pending.chunks(MAX_ITEMS) {
            let ids: Vec<_> = chunk.iter().map(|at| self.ids[*at].clone()).collect();
            let broker = self.client.broker();
            let statuses = persist(broker.outages(), "statuses", async || {
                broker.statuses(&ids).await
            })
            .await?;
            for (at, status) in chunk.iter().zip(statuses) {
                self.ended[*at] = status.is_none_or(Status::is_final);
                waiting += usize::from(status == Some(Status::Dispatched));
            }
        }
        let claimed = self.ids.len() - waiting;
        if self.fewest.is_none() {
            self.before.clone_from(&self.ended);
        }
        let fewest = self.fewest.map_or(claimed, |fewest| fewest.min(claimed));
        self.fewest = Some(fewest);
        ephemeral.seen(claimed > fewest, waiting > 0 && self.queued);
        self.pending.retain(|at| !self.ended[*at]);
        Ok(())
    }

    /// Prints the results that are next in order.
    async fn print(
        &mut self,
        ephemeral: &mut EphemeralWorker,
        results: &mut Results,
        progress: &Progress,
        out: &mut Out,
    ) -> Result<(), CommandError> {
        while let Some(range) = self.due() {
            let ids = &self.ids[range.clone()];
            let broker = self.client.broker();
            let jobs = persist(broker.outages(), "outcomes", async || {
                broker.outcomes(ids).await
            })
            .await?;
            for (at, job) in range.zip(jobs) {
                let status = job.as_ref().and_then(Job::status);
                if job.is_some() && !status.is_some_and(Status::is_final) {
                    // The job was retried meanwhile, or has a status of another client.
                    self.ended[at] = false;
                    self.pending.insert(0, at);
                    return Ok(());
                }
                if status == Some(Status::Finished) {
                    self.tally.finished += 1;
                } else {
                    self.tally.failed += 1;
                }
                let job = job.unwrap_or_else(|| gone(&self.ids[at]));
                if !self.before[at] {
                    ephemeral.ended(&job);
                }
                progress.aside(|| results.take(&self.inputs[at].path, &job, out))?;
                self.next = at + 1;
            }
            progress.aside(|| out.flush())?;
        }
        Ok(())
    }

    /// Returns the range of the next printable results.
    fn due(&self) -> Option<Range<usize>> {
        let ended = self.ended[self.next..]
            .iter()
            .take(FETCHED)
            .take_while(|ended| **ended);
        let end = self.next + ended.count();
        (end > self.next).then_some(self.next..end)
    }
}

/// Returns a substitute for a job that was deleted meanwhile.
fn gone(id: &JobId) -> Job {
    let fields = [
        ("status", "error"),
        ("error", "the job is gone: somebody deleted it"),
    ];
    let owned = fields.map(|(name, value)| (name.to_owned(), value.into()));
    Job::from_fields(id.as_str(), owned)
}

/// Returns the error for a series in which no job has ended for the given time.
fn nothing_ends(of: usize, waited: Duration) -> CommandError {
    let waited = duration_of(waited);
    let message = format!("no job of {of} has ended for {waited}; they go on");
    CommandError::new(Exit::NOT_ENDED, message)
        .with_hint("run the same command again to continue the wait")
}
