//! Tidy: what is left to do when runs are over, many at once and a little after their answers, so that who waits for an
//! answer does not wait for this: the trace is told, and failures are forgotten. What a service has not told yet when it
//! is killed is missing in the trace, and nowhere else.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::{Over, Received};
use meshwork_model::nooble::{Action, Ended, Traced};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::request::{comes_from, span, task_of};
use super::state::{Setup, State};

/// How long the first of those that are told together waits for the others.
const PAUSE: Duration = Duration::from_millis(5);
/// The most that wait to be told of, while the server does not answer, and the most bytes of their messages. What ends
/// then is not told.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The most that are told in one call: what runs meanwhile waits until it is put together.
const AT_ONCE: usize = 100;

/// A run that is over.
pub(super) struct Ran {
    pub(super) received: Arc<Received>,
    pub(super) action: Arc<Action>,
    /// The span of what was asked for, of a callback.
    pub(super) asker: Option<String>,
    pub(super) began: String,
    pub(super) took: Duration,
    pub(super) how: Ended,
    pub(super) error: String,
}

impl Ran {
    fn over(&self, setup: &Setup) -> Over {
        let action = &*self.action;
        let parent = comes_from(action).map(|from| from.parent_id().to_owned());
        // A callback says nothing of it, as Nooble4's do not.
        let parent = parent.or_else(|| self.asker.clone());
        let told = Traced {
            task: task_of(action, setup.broker.names().dialect()).into(),
            action: (&action.action_id).into(),
            action_type: (&action.action_type).into(),
            span: span(&action.action_id).into(),
            parent: parent.unwrap_or_default().into(),
            from: text(&action.origin_service),
            service: setup.client.service().into(),
            correlation: text(&action.correlation_id),
            trace: text(&action.trace_id),
            asked: (&action.timestamp).into(),
            began: (&self.began).into(),
            took_ms: u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            how: self.how,
            error: (&self.error).into(),
        };
        Over::new(&self.received, &told)
    }
}

/// A text that may be missing, as the trace has it.
fn text(of: &Option<String>) -> Cow<'_, str> {
    of.as_deref().unwrap_or_default().into()
}

/// The runs that are still to be told of.
#[derive(Default)]
pub(super) struct Ends {
    ran: Mutex<Untold>,
    came: Notify,
}

#[derive(Default)]
struct Untold {
    runs: Vec<Ran>,
    bytes: usize,
}

impl Ends {
    fn ran(&self) -> MutexGuard<'_, Untold> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run is over.
    pub(super) fn add(&self, run: Ran) {
        let mut ran = self.ran();
        if ran.runs.len() < MOST && ran.bytes < MOST_BYTES {
            ran.bytes += run.received.bytes().len();
            ran.runs.push(run);
            self.came.notify_one();
        }
    }
}

/// Tidies until the service has stopped and nothing runs any more.
pub(super) async fn tidy(state: Arc<State>) {
    let ended = state.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = state.over.came.notified() => {}
            () = &mut ended => return flush(&state).await,
        }
        tokio::select! {
            () = sleep(PAUSE) => flush(&state).await,
            () = &mut ended => return flush(&state).await,
        }
    }
}

async fn flush(state: &State) {
    let ran = std::mem::take(&mut *state.over.ran()).runs;
    let setup = &state.setup;
    for part in ran.chunks(AT_ONCE) {
        let over: Vec<_> = part.iter().map(|run| run.over(setup)).collect();
        if let Err(error) = setup.broker.tidy(&over).await {
            let many = part.len();
            tracing::warn!(%error, many, "the trace was not told of actions that are over");
        }
    }
}
