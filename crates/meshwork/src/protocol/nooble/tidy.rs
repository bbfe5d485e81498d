//! Tidy: what is left to do when runs are over, many at once and a little after their answers, so that who waits for an
//! answer does not wait for this: the trace is told, and failures are forgotten. What a service has not told yet when it
//! is killed is missing in the trace, and nowhere else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::{Nooble, Over};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long the first of those that are told together waits for the others.
const PAUSE: Duration = Duration::from_millis(5);
/// The most that wait to be told of, while the server does not answer, and the most bytes of what is told. What ends then
/// is not told.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The most that are told in one call: what runs meanwhile waits until it is put together.
const AT_ONCE: usize = 100;

/// The runs that are still to be told of.
#[derive(Default)]
pub(super) struct Ends {
    over: Mutex<Untold>,
    came: Notify,
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

/// Tidies until the service has stopped and nothing runs any more, which `ended` tells.
pub(super) async fn tidy(broker: Nooble, over: Arc<Ends>, ended: impl Future<Output = ()>) {
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = over.came.notified() => {}
            () = &mut ended => return flush(&broker, &over).await,
        }
        tokio::select! {
            () = sleep(PAUSE) => flush(&broker, &over).await,
            () = &mut ended => return flush(&broker, &over).await,
        }
    }
}

async fn flush(broker: &Nooble, over: &Ends) {
    let over = std::mem::take(&mut *over.over()).runs;
    for part in over.chunks(AT_ONCE) {
        let told = broker.outages().told("tidy", broker.tidy(part).await);
        if told.is_err() {
            tracing::debug!(
                many = part.len(),
                "the trace was not told of actions that are over"
            );
        }
    }
}
