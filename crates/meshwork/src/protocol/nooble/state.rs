//! The parts of a worker that only the protocol of Nooble4 has: its queues and what it was started with.

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
    /// The queues that it takes from; they never change.
    pub(super) queues: Vec<Arc<Queue>>,
    /// Their names.
    pub(super) names: watch::Sender<Arc<Vec<String>>>,
    pub(super) timeout: Duration,
    pub(super) runs: u32,
    pub(super) call_runs: u32,
    /// The pause after the first failure, and the longest one.
    pub(super) pauses: (Duration, Duration),
    pub(super) adopt: Option<Duration>,
    pub(super) unasked: bool,
    /// The runs that are over, as far as something is left to do for them.
    pub(super) over: Arc<Ends>,
    /// Functions take no job.
    pub(super) no_job: Arc<Job>,
    /// True if this worker consumes nothing more, so that it may be deregistered.
    pub(super) leaves: AtomicBool,
}

impl NoobleProtocol {
    /// A queue by its name.
    pub(super) fn queue(&self, name: &str) -> Option<&Arc<Queue>> {
        self.queues.iter().find(|queue| queue.name() == name)
    }
}
