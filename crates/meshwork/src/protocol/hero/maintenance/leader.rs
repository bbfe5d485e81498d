//! Leader election: the worker that polls `control` first after the last leader's time leads. So there is always a
//! leader while a worker runs.

use std::time::Duration;

use meshwork_broker::LeaderTask;

/// Interval of polls, which is also the longest time without a leader.
pub(in crate::protocol::hero) const POLL_EVERY: Duration = Duration::from_secs(1);
/// Time for which a worker leads. It is shorter than a poll interval, so that a single worker always leads.
pub(in crate::protocol::hero) const LEADS_FOR: Duration = Duration::from_millis(900);

/// The answer of a poll about leadership.
#[derive(Debug, Clone, Default)]
pub(in crate::protocol::hero) struct Leadership {
    /// True if this worker is the leader.
    pub(in crate::protocol::hero) leads: bool,
    /// Time until the next delayed job or schedule is due; `None` without one.
    pub(in crate::protocol::hero) due: Option<Duration>,
    /// Tasks of the leader that have work now.
    pub(in crate::protocol::hero) tasks: Vec<LeaderTask>,
}
