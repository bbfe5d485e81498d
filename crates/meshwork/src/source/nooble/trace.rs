//! Trace: tells the trace of runs that are over, many at once and a little after their answers, so that who waits for an
//! answer does not wait for this. What a service has not told yet when it is killed is missing there, and nowhere else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::MAX_ITEMS;
use meshwork_model::nooble::Traced;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::state::State;

/// How long the first of those that are told together waits for the others.
const PAUSE: Duration = Duration::from_millis(5);
/// The most entries that wait to be told, while the server does not answer. What ends then is not told.
const MOST: usize = 10_000;

/// What is still to be told.
#[derive(Default)]
pub(super) struct Trace {
    entries: Mutex<Vec<String>>,
    came: Notify,
}

impl Trace {
    fn entries(&self) -> MutexGuard<'_, Vec<String>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run is over.
    pub(super) fn add(&self, run: &Traced<'_>) {
        let mut entries = self.entries();
        if entries.len() < MOST {
            entries.push(run.write());
            self.came.notify_one();
        }
    }
}

/// Tells it until the service has stopped and nothing runs any more.
pub(super) async fn tell(state: Arc<State>) {
    let ended = state.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = state.trace.came.notified() => {}
            () = &mut ended => return flush(&state).await,
        }
        tokio::select! {
            () = sleep(PAUSE) => flush(&state).await,
            () = &mut ended => return flush(&state).await,
        }
    }
}

async fn flush(state: &State) {
    let entries = std::mem::take(&mut *state.trace.entries());
    for part in entries.chunks(MAX_ITEMS) {
        if let Err(error) = state.setup.broker.note(part).await {
            let many = part.len();
            tracing::warn!(%error, many, "the trace was not told of actions that are over");
        }
    }
}
