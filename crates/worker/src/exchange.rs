//! Exchange: one call of the engine to its protocol. It carries results of ended runs, a request for jobs, or both.

use std::collections::BTreeSet;

use meshwork_broker::{Backoff, Error};
use tokio::time::Instant;

use super::fetched::Fetched;
use super::task::Completion;
use meshwork_runtime::lease::Moment;

/// A request for jobs.
#[derive(Debug)]
pub struct FetchRequest {
    /// Time until which the leases of the jobs certainly last, counted from the sending of the call.
    pub(super) until: Moment,
    /// Greatest number of jobs. With 0, the call only returns unwanted prefetched ids to their queues.
    pub want: usize,
    /// Number of these for which the worker has no free slot yet. Limited queues must not give them, since a job that does
    /// not run would use up the limit. 0 unless
    /// [`Protocol::prefetches`](super::Protocol::prefetches).
    pub ahead: usize,
    /// Number of earlier requests that returned jobs, which decides the order of queues. `None` while another request
    /// is in flight.
    pub round: Option<usize>,
    /// Queues to leave out, since they are paused or at a limit.
    pub skipped: Vec<String>,
    /// Queues from which ids were prefetched; they are never left out.
    pub arrivals: BTreeSet<String>,
    /// True to read the prefetch lists of all queues.
    pub sweep: bool,
}

/// Results to store, with a request for jobs if slots are free.
#[derive(Debug)]
pub(super) struct Exchange<J> {
    pub(super) results: Vec<Completion<J>>,
    pub(super) fetch: Option<FetchRequest>,
    /// Time at which it was sent, by both clocks.
    pub(super) sent: Instant,
    pub(super) sent_at: Moment,
}

impl<J> Exchange<J> {
    /// Returns the greatest number of slots that the call needs: those of its results are free only after they are
    /// stored.
    pub(super) fn slots(&self) -> usize {
        let want = self.fetch.as_ref().map_or(0, |fetch| fetch.want);
        want.max(self.results.len())
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
    /// Returns `Stored` for true, and `Stale` for false.
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
    /// Claimed jobs, if requested. `None` if storing the results failed before.
    pub fetched: Option<Result<Fetched<J>, Error>>,
}

/// Events for which a fetcher waits.
pub(super) enum ExchangeEvent<J> {
    /// A call has ended.
    Ended(Box<Exchange<J>>, Exchanged<J>),
    /// Unwanted jobs were returned to their queues.
    Released,
    /// The pause after a failed call is over.
    Rested(Backoff),
}
