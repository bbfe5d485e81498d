//! State of a worker that only the protocol of Nooble4 has.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use meshwork_model::job::Job;
use tokio::sync::watch;

use super::client::Client;
use super::queue::Queue;
use super::tidy::Ends;

/// The protocol of Nooble4, for one worker.
pub(super) struct NoobleProtocol {
    pub(super) broker: Nooble,
    pub(super) client: Client,
    pub(super) worker: String,
    /// Queues from which it takes messages; they never change.
    pub(super) queues: Vec<Arc<Queue>>,
    /// Names of the queues.
    pub(super) names: watch::Sender<Arc<Vec<String>>>,
    pub(super) timeout: Duration,
    pub(super) runs: u32,
    pub(super) max_call_attempts: u32,
    /// Pause after the first failure, and the longest one.
    pub(super) pauses: (Duration, Duration),
    pub(super) adopt: Option<Duration>,
    pub(super) accept_unsolicited: bool,
    /// Ended runs whose cleanup is pending.
    pub(super) over: Arc<Ends>,
    /// Job for functions, which need none.
    pub(super) no_job: Arc<Job>,
    /// True if this worker takes no more messages, so that it may be deregistered.
    pub(super) leaves: AtomicBool,
}

impl NoobleProtocol {
    /// Returns a queue by its name.
    pub(super) fn queue(&self, name: &str) -> Option<&Arc<Queue>> {
        self.queues.iter().find(|queue| queue.name() == name)
    }
}
