//! Waiting for messages: a connection for each context waits on its outbox, so that an idle coordinator asks seldom.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Error};
use meshwork_model::keys::context::ContextId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::ContextHandle;

/// The most contexts whose outboxes are watched: each takes a connection. With more, none is.
const MOST: usize = 16;
/// The length of one wait at the server.
const WAIT: Duration = Duration::from_secs(10);

/// The outboxes that are watched.
pub(super) struct OutboxWatch {
    tasks: HashMap<ContextId, Task>,
    complete: bool,
    woken: Arc<Notify>,
    rounds: watch::Sender<u64>,
}

/// A wait, which ends when it is dropped: it takes nothing.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl OutboxWatch {
    pub(super) fn new() -> Self {
        Self {
            tasks: HashMap::new(),
            complete: false,
            woken: Arc::default(),
            rounds: watch::Sender::new(0),
        }
    }

    /// Watches the outboxes of these contexts, and of no others.
    pub(super) fn follow<'a>(&mut self, contexts: impl Iterator<Item = &'a ContextHandle> + Clone) {
        self.complete = contexts.clone().count() <= MOST;
        if !self.complete {
            return self.tasks.clear();
        }
        let is_served = |id: &ContextId| contexts.clone().any(|context| context.id() == *id);
        self.tasks.retain(|id, _| is_served(id));
        for context in contexts.clone() {
            let (woken, rounds) = (&self.woken, &self.rounds);
            self.tasks.entry(context.id()).or_insert_with(|| {
                let wait = wait(context.clone(), Arc::clone(woken), rounds.subscribe());
                Task(tokio::spawn(wait))
            });
        }
    }

    /// True if all contexts are watched.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns when a message has come to one of them since the last return.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Says that the coordinator has looked into all contexts.
    pub(super) fn looked(&self) {
        self.rounds.send_modify(|rounds| *rounds += 1);
    }
}

async fn wait(context: ContextHandle, woken: Arc<Notify>, mut rounds: watch::Receiver<u64>) {
    let mut backoff = Backoff::new();
    loop {
        let Err(error) = wait_over(&context, &woken, &mut rounds, &mut backoff).await;
        tracing::debug!(%error, context = %context.id(), "outbox not watched: trying again");
        backoff.wait().await;
    }
}

async fn wait_over(
    context: &ContextHandle,
    woken: &Notify,
    rounds: &mut watch::Receiver<u64>,
    backoff: &mut Backoff,
) -> Result<Infallible, Error> {
    let list = context.keys().msg_out();
    let broker = context.node().broker().of_context(context.keys().clone());
    let broker = broker.await?;
    let conn = broker.blocking_conn().await?;
    loop {
        let came = broker.wait_for_element(&conn, &list, WAIT).await?;
        *backoff = Backoff::new();
        if !came {
            continue;
        }
        rounds.mark_unchanged();
        woken.notify_one();
        // A look that is under way may have begun before the message came.
        for _ in 0..2 {
            if rounds.changed().await.is_err() {
                // The coordinator has ended, and this task with it.
                std::future::pending::<()>().await;
            }
        }
    }
}
