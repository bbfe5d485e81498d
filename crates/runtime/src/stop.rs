//! Cancel signal of a run, with its reason.

use meshwork_macros::boxed;
use tokio::sync::watch;

/// Reason of a cancelled run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// A cancel was requested: the script has its grace, and the run is reported as
    /// [`Failure::stopped`](meshwork_model::outcome::Failure::stopped).
    Requested,
    /// The job does not belong to this worker any more: it has ended, was released, or its lease is lost. It may
    /// already run elsewhere, so the script is killed at once and the report is dropped.
    Lost,
}

/// Cancel signal of a run; clones share it. A given signal stays, and [`StopReason::Requested`] may become
/// [`StopReason::Lost`].
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<Option<StopReason>>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl StopSignal {
    /// Gives the signal. Does not wait.
    pub fn stop(&self, reason: StopReason) {
        self.0.send_if_modified(|given| {
            let stronger = *given < Some(reason);
            if stronger {
                *given = Some(reason);
            }
            stronger
        });
    }

    /// Returns the reason, if the signal was given.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits for the signal.
    #[boxed]
    pub async fn stopped(&self) -> StopReason {
        self.at_least(StopReason::Requested).await
    }

    /// Waits until the reason is [`StopReason::Lost`].
    #[boxed]
    pub async fn lost(&self) {
        self.at_least(StopReason::Lost).await;
    }

    async fn at_least(&self, reason: StopReason) -> StopReason {
        let mut given = self.0.subscribe();
        let strong = given.wait_for(|given| *given >= Some(reason)).await;
        // The sender belongs to `self`, so it outlives this call.
        strong.ok().and_then(|given| *given).unwrap_or(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_only_becomes_stronger() {
        let signal = StopSignal::default();
        assert_eq!(signal.reason(), None);
        signal.stop(StopReason::Requested);
        assert_eq!(signal.stopped().await, StopReason::Requested);
        signal.clone().stop(StopReason::Lost);
        signal.stop(StopReason::Requested);
        signal.lost().await;
        assert_eq!(signal.reason(), Some(StopReason::Lost));
    }
}
