//! The stop signal of a run, and its reason.

use tokio::sync::watch;

/// Why a run is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// A cancel request: the script gets its grace, and the run is reported as
    /// [`Failure::stopped`](meshwork_model::outcome::Failure::stopped).
    Requested,
    /// The job is this worker's no more (it was ended from outside, handed back, or its lease is lost) and
    /// may run elsewhere already: the script is ended at once, and nobody wants a report.
    Lost,
}

/// Tells a run to stop; all clones are one signal. It stands once it is given, and only becomes stronger:
/// what was [`StopReason::Requested`] may become [`StopReason::Lost`].
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<Option<StopReason>>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl StopSignal {
    /// Gives the signal. Returns at once.
    pub fn stop(&self, reason: StopReason) {
        self.0.send_if_modified(|given| {
            let stronger = *given < Some(reason);
            if stronger {
                *given = Some(reason);
            }
            stronger
        });
    }

    /// The reason, if the signal was given.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Returns when the signal is given, for whichever reason.
    pub async fn stopped(&self) -> StopReason {
        self.at_least(StopReason::Requested).await
    }

    /// Returns when the run is to end at once.
    pub async fn lost(&self) {
        self.at_least(StopReason::Lost).await;
    }

    async fn at_least(&self, reason: StopReason) -> StopReason {
        let mut given = self.0.subscribe();
        let strong = given.wait_for(|given| *given >= Some(reason)).await;
        // The sender is `self`; so it does not end before.
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
