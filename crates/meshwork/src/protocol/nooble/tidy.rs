//! Cleanup after runs, batched and after their answers, so that callers do not wait for it: trace entries are written,
//! and failure counts removed. Entries pending when a service is killed are missing in the trace only.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::{Nooble, Over};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Wait of a batch's first run for others.
const PAUSE: Duration = Duration::from_millis(5);
/// Most pending runs while the server does not answer, and their most bytes. Further runs are not traced.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Most runs in one call: the next batch waits for it.
const AT_ONCE: usize = 100;

/// Runs whose cleanup is pending.
#[derive(Default)]
pub(super) struct Ends {
    over: Mutex<Untold>,
    came: Notify,
    /// Held during a call.
    telling: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Untold {
    runs: Vec<Over>,
    bytes: usize,
}

impl Ends {
    fn over(&self) -> MutexGuard<'_, Untold> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run is over.
    pub(super) fn add(&self, run: Over) {
        let mut over = self.over();
        if over.runs.len() < MOST && over.bytes < MOST_BYTES {
            over.bytes += run.bytes();
            over.runs.push(run);
            self.came.notify_one();
        }
    }
}

/// Tidies for ever. A call that was begun is ended by a task of its own: what it tells is known nowhere else.
pub(super) async fn tidy(broker: &Nooble, over: &Arc<Ends>) -> Infallible {
    loop {
        over.came.notified().await;
        sleep(PAUSE).await;
        let (broker, over) = (broker.clone(), Arc::clone(over));
        let flush = tokio::spawn(async move { flush(&broker, &over).await });
        if let Err(error) = flush.await {
            tracing::error!(%error, "actions that are over are missing in the trace");
        }
    }
}

/// Tidies what is there, after the call under way if there is one.
pub(super) async fn flush(broker: &Nooble, ends: &Ends) {
    let _telling = ends.telling.lock().await;
    let over = std::mem::take(&mut *ends.over()).runs;
    for part in over.chunks(AT_ONCE) {
        let tidied = broker.outages().observe("tidy", broker.tidy(part).await);
        if tidied.is_err() {
            tracing::debug!(
                many = part.len(),
                "the trace was not told of actions that are over"
            );
        }
    }
}
