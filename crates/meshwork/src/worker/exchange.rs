//! Exchange: one call of the engine to its protocol: results of runs that have ended, a request for jobs, or both.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork_broker::{Backoff, Error};
use tokio::time::Instant;

use super::task::Completion;

/// A request for jobs.
#[derive(Debug)]
pub struct FetchRequest {
    /// Until when the jobs belong to this worker for certain: a lease begins when the server has the call.
    pub(super) until: Instant,
    /// The most jobs. With 0 only ids that were prefetched and are not wanted go back.
    pub want: usize,
    /// Number of earlier requests with jobs, for the order of queues; none while another request is in flight.
    pub round: Option<usize>,
    /// Queues that are left out, since they are paused or at a limit.
    pub skipped: Vec<String>,
    /// Queues from which ids were prefetched: none of them is left out.
    pub arrivals: BTreeSet<String>,
    /// True to read the prefetch lists of all queues.
    pub sweep: bool,
}

/// The answer to a [`FetchRequest`].
#[derive(Debug)]
pub struct Fetched<J> {
    /// The jobs, each under a lease.
    pub jobs: Vec<J>,
    /// Ids without a job that can be run.
    pub dropped: usize,
    /// True if the call stopped at its bound.
    pub more: bool,
    /// Queues that are paused or at a limit, and when to ask for each again.
    pub blocked: Vec<(String, Duration)>,
    /// The server's time of the claim, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Results that are sent, with a request for jobs if there is one.
#[derive(Debug)]
pub(super) struct Exchange<J> {
    pub(super) results: Vec<Completion<J>>,
    pub(super) fetch: Option<FetchRequest>,
}

impl<J> Exchange<J> {
    /// Most slots that it needs: those of its results are free only after they are stored.
    pub(super) fn slots(&self) -> usize {
        let want = self.fetch.as_ref().map_or(0, |fetch| fetch.want);
        want.max(self.results.len())
    }
}

impl<J> Fetched<J> {
    /// Jobs, and nothing else to say: there are no more now.
    #[must_use]
    pub fn of(jobs: Vec<J>) -> Self {
        Self {
            jobs,
            dropped: 0,
            more: false,
            blocked: Vec::new(),
            at_ms: 0,
        }
    }
}

/// The outcome of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The result is stored.
    Stored,
    /// The job does not belong to this worker any more; nothing was changed.
    Stale,
}

impl Completed {
    /// Stored, or else stale: the job no longer belonged to this worker.
    #[must_use]
    pub fn of(is_stored: bool) -> Self {
        match is_stored {
            true => Self::Stored,
            false => Self::Stale,
        }
    }
}

/// The answer to an [`Exchange`].
#[derive(Debug)]
pub struct Exchanged<J> {
    /// The outcome of each result.
    pub completed: Result<Vec<Completed>, Error>,
    /// The jobs, if requested; none if storing the results failed before.
    pub fetched: Option<Result<Fetched<J>, Error>>,
}

/// The events that a fetcher waits for.
pub(super) enum ExchangeEvent<J> {
    /// A call has ended.
    Ended(Box<Exchange<J>>, Exchanged<J>),
    /// Jobs that are not wanted now are back in their queues.
    Released,
    /// The pause after a failed call is over.
    Rested(Backoff),
}
