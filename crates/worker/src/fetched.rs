//! Fetched: claimed jobs, of a claim or of a blocking read.

use std::time::Duration;

/// The answer to a [`FetchRequest`](super::FetchRequest).
#[derive(Debug)]
pub struct Fetched<J> {
    /// Claimed jobs, each under a lease.
    pub jobs: Vec<J>,
    /// Number of ids without a job that can run.
    pub dropped: usize,
    /// True if the call stopped at its bound.
    pub more: bool,
    /// Queues that are paused or at a limit, each with the time until the next try.
    pub blocked: Vec<(String, Duration)>,
    /// The server's time of the claim, in milliseconds since 1970.
    pub at_ms: u64,
}

impl<J> Fetched<J> {
    /// Creates the answer of a claim that returned jobs and reached no bound.
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
