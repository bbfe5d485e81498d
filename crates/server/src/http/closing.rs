//! The end of a connection: when it begins, and how long its requests may take then.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Part of a grace in which the last answers are sent.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Text for a request whose answer does not come within the grace.
pub(crate) const CUT_OFF: &str =
    "the server stops before the answer: the call may have been done; repeat it";

/// The end of a connection: the server stops, or the connection has reached its longest life. Each request has it as an
/// extension. A connection that was taken over has no longest life.
#[derive(Debug, Clone)]
pub(crate) struct Closing {
    begins: CancellationToken,
    grace: Duration,
    taken_over: TaskTracker,
}

impl Closing {
    pub(super) fn new(stop: &CancellationToken, grace: Duration, taken_over: &TaskTracker) -> Self {
        Self {
            begins: stop.child_token(),
            grace,
            taken_over: taken_over.clone(),
        }
    }

    pub(super) fn begin(&self) {
        self.begins.cancel();
    }

    /// Returns the token that is cancelled when the end begins: waits for events are over then.
    pub(crate) fn begins(&self) -> &CancellationToken {
        &self.begins
    }

    /// Returns when the grace is nearly over: what has no answer then is refused.
    pub(crate) async fn cuts_off(&self) {
        self.begins.cancelled().await;
        tokio::time::sleep(self.grace.saturating_sub(LAST_WORDS)).await;
    }

    /// Lets the server wait for a connection that was taken over, until this is dropped.
    pub(crate) fn take_over(&self) -> TaskTrackerToken {
        self.taken_over.token()
    }
}
