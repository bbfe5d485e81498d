//! Coordinator: delivers messages of contexts through the transport, processes incoming ones, answers, and ends
//! expired ones. Several may serve one context: each message has one coordinator at a time, and each step happens
//! once.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{LogLevel, MessageStatus, NodeId, Overdue};
use meshwork_model::keys::context::ContextId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audit::{COORDINATOR, Change};
use super::message::{logs_with, next_look_ms};
use super::outbox_watch::OutboxWatch;
use super::{ContextError, ContextHandle, LocalTransport, MOST, Node, Transport};

/// Between two looks where something was done lately: jobs of messages may end.
const SOON: Duration = Duration::from_millis(100);
/// Such a time.
const LATELY: Duration = Duration::from_secs(30);
/// Between two looks where nothing was done for long, and each outbox is watched. Else a connection may say nothing of a
/// message.
const WATCHED: Duration = Duration::from_secs(1);
/// The same where there are too many outboxes to watch.
const UNWATCHED: Duration = Duration::from_millis(250);
/// Between two looks for new contexts.
const LOOK_FOR_CONTEXTS: Duration = Duration::from_secs(2);

/// The contexts that a coordinator serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All of the node, also those that are made later.
    All,
    /// These.
    Some(Vec<ContextId>),
}

/// Serves the messages of contexts; cheap to clone.
#[derive(Clone)]
pub struct Coordinator {
    pub(super) node: Node,
    pub(super) id: NodeId,
    pub(super) transport: Arc<dyn Transport>,
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Coordinator {
    /// One over the transport inside the node.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn new(node: &Node) -> Result<Self, ContextError> {
        let transport = LocalTransport::new(node).await?;
        Self::over(node, transport).await
    }

    /// One over another transport.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn over(node: &Node, transport: impl Transport) -> Result<Self, ContextError> {
        Ok(Self {
            id: node.identity().await?,
            node: node.clone(),
            transport: Arc::new(transport),
        })
    }

    /// The transport in use.
    #[must_use]
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Does all that there is to do in a context now, once. Returns how much it was.
    ///
    /// # Errors
    /// If the server does not take a call; what is left is done by the next step.
    pub async fn step(&self, context: &ContextHandle) -> Result<usize, ContextError> {
        // First: a message whose time is over is not sent any more.
        let ended = self.expire(context).await?;
        let sent = self.route(context).await?;
        let sorted = context.sort_inbox().await?;
        let taken = context.take_up(self.id, &*self.transport).await?;
        let answered = context.answer(self.id, &*self.transport).await?;
        Ok(sent + sorted + taken + answered + ended)
    }

    /// Steps in all contexts of the node until there is nothing to do.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn settle(&self) -> Result<(), ContextError> {
        loop {
            let mut done = 0;
            for context in self.node.contexts().await? {
                done += self.step(&context).await?;
            }
            if done == 0 {
                return Ok(());
            }
        }
    }

    /// Serves contexts until `stop` is cancelled, and completes begun steps. Failures are logged and retried.
    pub async fn run(&self, serves: &Serves, stop: &CancellationToken) {
        let (mut contexts, mut looked) = (Vec::new(), None::<Instant>);
        let (mut backoff, mut watch) = (Backoff::new(), OutboxWatch::new());
        let mut worked = Instant::now();
        while !stop.is_cancelled() {
            let late = looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_CONTEXTS);
            let done = match late {
                true => match self.find(serves).await {
                    Ok(found) => {
                        (contexts, looked) = (found, Some(Instant::now()));
                        watch.follow(&contexts);
                        self.round(&contexts).await
                    }
                    Err(error) => Err(error),
                },
                false => self.round(&contexts).await,
            };
            watch.looked();
            let pause = async {
                match done {
                    Ok(0) => {
                        let idle = match (worked.elapsed() < LATELY, watch.is_complete()) {
                            (true, _) => SOON,
                            (false, true) => WATCHED,
                            (false, false) => UNWATCHED,
                        };
                        let _ = tokio::time::timeout(idle, watch.woken()).await;
                    }
                    Ok(_) => worked = Instant::now(),
                    Err(error) => {
                        tracing::warn!(%error, "messages not delivered: trying again");
                        backoff.wait().await;
                        return;
                    }
                }
                backoff = Backoff::new();
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = pause => {}
            }
        }
    }

    async fn find(&self, serves: &Serves) -> Result<Vec<ContextHandle>, ContextError> {
        match serves {
            Serves::All => self.node.contexts().await,
            Serves::Some(ids) => {
                let mut found = Vec::with_capacity(ids.len());
                for id in ids {
                    found.push(self.node.context(*id).await?);
                }
                Ok(found)
            }
        }
    }

    /// A step, after one call that asks for all of it.
    async fn step_if_needed(&self, context: &ContextHandle) -> Result<usize, ContextError> {
        let keys = context.keys();
        let lists = [keys.msg_out(), keys.msg_in(), keys.msg_in_jobs()];
        let times = [keys.outbound(), keys.sent(), keys.open()];
        let lists = lists.iter().map(|key| (key.as_str(), Read::Tail(1)));
        let times = times.iter().map(|key| (key.as_str(), Read::Due(1)));
        let reads: Vec<_> = lists.chain(times).collect();
        match self.node.store().any(context.database(), &reads).await? {
            true => self.step(context).await,
            false => Ok(0),
        }
    }

    /// A step in each; one that fails holds up no other.
    async fn round(&self, contexts: &[ContextHandle]) -> Result<usize, ContextError> {
        let (mut done, mut failed) = (0, None);
        for context in contexts {
            match self.step_if_needed(context).await {
                Ok(steps) => done += steps,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Ends messages of a context one of whose timeouts is over.
    async fn expire(&self, context: &ContextHandle) -> Result<usize, ContextError> {
        let sent = context.keys().sent();
        let elements = self
            .node
            .store()
            .elements(context.database(), &sent, Read::Due(MOST))
            .await?;
        for element in &elements {
            let forget = Commit::default().unmark(&sent, element);
            let view = match context.keys().parse_message(element) {
                Ok(key) => context.message_of(key).await.ok().flatten(),
                Err(_) => None,
            };
            let Some(view) = view.filter(|view| !view.message.status.is_final()) else {
                let _ = context.commit(&forget).await?;
                continue;
            };
            let now = self.node.now().await?;
            let Some(overdue) = view.message.overdue(now, view.stored_at.is_some()) else {
                let next = Commit::default().mark(&sent, next_look_ms(&view.message, now), element);
                let _ = context.commit(&next).await?;
                continue;
            };
            let why = match overdue {
                Overdue::Delivery => format!(
                    "timeout: not stored by its target within {} s",
                    view.message.timeout
                ),
                Overdue::Acknowledgement => {
                    format!(
                        "timeout_ack: not taken up within {} s",
                        view.message.timeout_ack
                    )
                }
                Overdue::Result => format!(
                    "timeout_result: not processed within {} s",
                    view.message.timeout_result
                ),
            };
            let logs = logs_with(&view.message, now, LogLevel::Error, &why);
            let record = context.keys().message(view.message.key());
            let change = Change {
                who: COORDINATOR,
                what: "time out",
                object: &record,
                after: &why,
                ..Change::default()
            };
            let commit = context.changed(&view, MessageStatus::Error, now, &logs);
            let _ = context
                .commit(&change.noted(commit, &context.keys().audit()))
                .await?;
        }
        Ok(elements.len())
    }
}
