//! Leader election for the second: the worker that polls `control` first after the last leader's time is over leads. It
//! cannot be down: where nobody polls, nobody works.

use std::time::Duration;

/// Between two polls; so long, at most, a second goes on without a leader.
pub(in crate::protocol::hero) const POLL_EVERY: Duration = Duration::from_secs(1);
/// For how long a leader leads: a little less, so that a worker that is alone leads all the time.
pub(in crate::protocol::hero) const LEADS_FOR: Duration = Duration::from_millis(900);

/// The answer of a poll.
#[derive(Debug, Clone, Default)]
pub(in crate::protocol::hero) struct Leadership {
    /// True if this worker is the leader.
    pub(in crate::protocol::hero) leads: bool,
    /// Time until the next delayed job or schedule is due. None: there is none.
    pub(in crate::protocol::hero) due: Option<Duration>,
    /// The leader's tasks that have something to do now.
    pub(in crate::protocol::hero) tasks: Vec<String>,
}
