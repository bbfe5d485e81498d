//! Cleanup after runs, in batches after their replies, so that callers do not wait: writes trace entries and removes
//! failure counts. If a service is killed, only its pending trace entries are missing.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::{AckCleanup, Nooble};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time for which a batch waits for further runs.
const PAUSE: Duration = Duration::from_millis(5);
/// Greatest number of pending runs while the server does not answer, and of their bytes. Further runs are not traced.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Greatest number of runs in one call, which bounds the wait of the next batch.
const AT_ONCE: usize = 100;

/// Runs whose cleanup is pending.
#[derive(Default)]
pub(super) struct Ends {
    over: Mutex<Untold>,
    came: Notify,
    /// Locked during a call.
    telling: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Untold {
    runs: Vec<AckCleanup>,
    bytes: usize,
}

impl Ends {
    fn over(&self) -> MutexGuard<'_, Untold> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an ended run.
    pub(super) fn add(&self, run: AckCleanup) {
        let mut over = self.over();
        if over.runs.len() < MOST && over.bytes < MOST_BYTES {
            over.bytes += run.bytes();
            over.runs.push(run);
            self.came.notify_one();
        }
    }
}

/// Cleans up for ever. A started call ends in a task of its own, since only that call has the data.
pub(super) async fn tidy(broker: &Nooble, over: &Arc<Ends>) -> Infallible {
    loop {
        over.came.notified().await;
        sleep(PAUSE).await;
        let (broker, over) = (broker.clone(), Arc::clone(over));
        let flush = tokio::spawn(async move { flush(&broker, &over).await });
        if let Err(error) = flush.await {
            tracing::error!(%error, "trace entries lost");
        }
    }
}

/// Cleans up all pending runs, after a call in flight.
pub(super) async fn flush(broker: &Nooble, ends: &Ends) {
    let _telling = ends.telling.lock().await;
    let over = std::mem::take(&mut *ends.over()).runs;
    for part in over.chunks(AT_ONCE) {
        let tidied = broker
            .outages()
            .observe("tidy", broker.clean_up(part).await);
        if tidied.is_err() {
            tracing::debug!(many = part.len(), "trace entries not stored");
        }
    }
}
