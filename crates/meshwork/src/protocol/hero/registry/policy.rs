//! Notices a server whose memory policy was changed after the worker connected: it may delete jobs when memory runs out.

use std::time::Duration;

use meshwork_broker::Broker;
use tokio::time::Instant;

use super::CALL;
use meshwork_worker::dedicated_thread::within;

/// Interval of checks: an operator changes the policy rarely, and a check reads one section of `INFO`.
const EVERY: Duration = Duration::from_secs(15);
/// Time for each worker of a pool between two checks: those of the others are about the same servers.
const EACH: Duration = Duration::from_millis(500);

/// The last check.
#[derive(Debug, Default)]
pub(super) struct Policy {
    checked: Option<Instant>,
    evicts: bool,
    every: Duration,
}

impl Policy {
    /// Creates the check of one of these workers.
    pub(super) fn of(pool_size: u32) -> Self {
        Self {
            every: EVERY.max(EACH * pool_size),
            ..Self::default()
        }
    }

    /// Checks the policy if it is time, and logs a change. A user who may not read it gets no check.
    pub(super) async fn check(&mut self, broker: &Broker) {
        if self.checked.is_some_and(|at| at.elapsed() < self.every) {
            return;
        }
        if self.checked.replace(Instant::now()).is_none() {
            // The checks of a pool are spread.
            let early = self.every.mul_f64(rand::random_range(0.0..1.0));
            self.checked = Instant::now().checked_sub(early);
        }
        let Ok(unsuitable) = within("policy", CALL, broker.evicts()).await else {
            return;
        };
        match (&unsuitable, self.evicts) {
            (Some(unsuitable), false) => {
                tracing::error!(reason = %unsuitable, "the server may delete jobs from now on");
            }
            (None, true) => tracing::info!("the server deletes no jobs any more"),
            _ => {}
        }
        self.evicts = unsuitable.is_some();
    }
}
