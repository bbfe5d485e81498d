//! Watches outboxes for new messages, with a connection per context, so that an idle coordinator polls rarely.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Error};
use meshwork_model::keys::context::ContextId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::context::ContextHandle;

/// Greatest number of watched outboxes, since each takes a connection. With more contexts, none is watched.
const MOST: usize = 16;
/// Duration of one blocking call.
const WAIT: Duration = Duration::from_secs(10);

/// The watched outboxes.
pub(crate) struct OutboxWatch {
    tasks: HashMap<ContextId, Task>,
    complete: bool,
    woken: Arc<Notify>,
    rounds: watch::Sender<u64>,
}

/// A blocking call, which ends when dropped. It takes no element.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl OutboxWatch {
    pub(crate) fn new() -> Self {
        Self {
            tasks: HashMap::new(),
            complete: false,
            woken: Arc::default(),
            rounds: watch::Sender::new(0),
        }
    }

    /// Watches the outboxes of exactly these contexts.
    pub(crate) fn follow<'a>(&mut self, contexts: impl Iterator<Item = &'a ContextHandle> + Clone) {
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

    /// Returns true if the outboxes of all contexts are watched.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns when a message has arrived since the last return.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Notes that the coordinator has finished a round.
    pub(crate) fn looked(&self) {
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
        // The current round may have begun before the message arrived, so wait for the next one.
        for _ in 0..2 {
            if rounds.changed().await.is_err() {
                // The coordinator has ended, so this task ends too.
                std::future::pending::<()>().await;
            }
        }
    }
}
