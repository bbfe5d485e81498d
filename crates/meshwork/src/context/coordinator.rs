//! Coordinator: delivers messages of contexts through the transport, processes incoming ones, answers, and ends
//! expired ones. Several may serve one context: each message has one coordinator at a time, and each step happens
//! once.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_broker::context::{Commit, Outbox, Read};
use meshwork_model::context::{
    LogLevel, Message, MessageStatus, MessageType, NodeId, Overdue, field,
};
use meshwork_model::envelope::Nonce;
use meshwork_model::keys::context::{ContextId, MessageKey};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audit::Change;
use super::message::{MessageView, logs_with, next_look_ms};
use super::outbox_watch::OutboxWatch;
use super::{
    ContextError, ContextHandle, Delivery, LocalTransport, Node, Origin, Parcel, TRIES, Transport,
};

/// Author of a coordinator's actions in audit trails.
const COORDINATOR: &str = "coordinator";
/// Lease of a message: far longer than a delivery takes.
const LEASE: Duration = Duration::from_secs(10);
/// Messages of one step.
const MOST: usize = 100;
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
    node: Node,
    id: NodeId,
    transport: Arc<dyn Transport>,
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
                        tracing::warn!(%error, "messages not served: trying again");
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

    /// Hands what a context sends to the transport.
    async fn route(&self, context: &ContextHandle) -> Result<usize, ContextError> {
        let keys = context.keys();
        let (waiting, taken, leases) =
            (keys.msg_out(), keys.msg_out_coordinator(), keys.outbound());
        let outbox = Outbox {
            waiting: &waiting,
            taken: &taken,
            leases: &leases,
        };
        let store = self.node.store();
        let elements = store.take(context.database(), outbox, LEASE, MOST).await?;
        for element in &elements {
            self.route_one(context, outbox, element).await?;
        }
        Ok(elements.len())
    }

    async fn route_one(
        &self,
        context: &ContextHandle,
        outbox: Outbox<'_>,
        element: &[u8],
    ) -> Result<(), ContextError> {
        let settled = Commit::default()
            .drop(outbox.taken, element)
            .unmark(outbox.leases, element);
        let drop = async |why: String| {
            let object: String = String::from_utf8_lossy(element).chars().take(80).collect();
            let change = Change {
                who: COORDINATOR,
                what: "drop",
                object: &object,
                before: outbox.waiting,
                after: &why,
            };
            let commit = change.noted(settled.clone(), &context.keys().audit());
            context.commit(&commit).await.map(|_| ())
        };
        let key = match context.keys().parse_message(element) {
            Ok(key) => key,
            Err(error) => return drop(error.to_string()).await,
        };
        let view = match context.message_of(key).await {
            Ok(Some(view)) => view,
            Ok(None) => return drop("there is no such message".to_owned()).await,
            Err(ContextError::Record(error)) => return drop(error.to_string()).await,
            Err(error) if error.is_of_a_key() => return drop(error.to_string()).await,
            Err(error) => return Err(error),
        };
        if let Some(why) = not_sent(&view) {
            return drop(why).await;
        }
        let Some((message, nonce)) = self.prepared(context, &view).await? else {
            // Another coordinator prepares it: it comes again.
            return Ok(());
        };
        let delivered = self.delivered(context, &message, view.re.as_deref(), nonce);
        let delivery = match delivered.await {
            Err(error) if error.is_of_a_key() => Delivery::Refused {
                reason: error.to_string(),
            },
            delivery => delivery?,
        };
        self.settle_one(context, &settled, key, &delivery).await
    }

    /// A message as it is sent, and its nonce. A plain client may leave both the nonce and the time out: they are noted
    /// before it is sent for the first time.
    async fn prepared(
        &self,
        context: &ContextHandle,
        view: &MessageView,
    ) -> Result<Option<(Message, String)>, ContextError> {
        let mut message = view.message.clone();
        if let Some(nonce) = &view.nonce {
            return Ok(Some((message, nonce.clone())));
        }
        let record = context.keys().message(message.key());
        let (nonce, now) = (Nonce(rand::random()).to_string(), self.node.now().await?);
        if message.created_at == 0 {
            message.created_at = now;
        }
        let created_at = message.created_at.to_string();
        let fields = [
            (field::NONCE, nonce.as_str()),
            (field::CREATED_AT, &created_at),
            (field::STATUS, message.status.as_str()),
        ];
        let commit = Commit::default()
            .is(&record, field::NONCE, b"")
            .set(&record, fields);
        Ok(context
            .commit(&commit)
            .await?
            .is_done()
            .then_some((message, nonce)))
    }

    async fn delivered(
        &self,
        context: &ContextHandle,
        message: &Message,
        re: Option<&str>,
        nonce: String,
    ) -> Result<Delivery, ContextError> {
        let to_node = message.target_node.unwrap_or(self.id);
        if !self.transport.reaches(to_node) {
            let reason = format!("there is no way to node {to_node}");
            return Ok(Delivery::Refused { reason });
        }
        let parcel = Parcel {
            origin: Origin {
                node: self.id,
                context: context.id(),
                message: message.key(),
                nonce,
            },
            // A message that names no context is for its own.
            to: message.target_context.unwrap_or(context.id()),
            re: re.and_then(|re| MessageKey::of_numbers(re).ok()),
            message: message.clone(),
        };
        self.transport.deliver(&parcel).await
    }

    /// Takes a message off what is to be sent, and notes in its record what became of it.
    async fn settle_one(
        &self,
        context: &ContextHandle,
        settled: &Commit,
        key: MessageKey,
        delivery: &Delivery,
    ) -> Result<(), ContextError> {
        for _ in 0..TRIES {
            // An acknowledgement may have come meanwhile.
            let commit = match context.message_of(key).await? {
                Some(view) => {
                    self.outcome(context, settled.clone(), &view, delivery)
                        .await?
                }
                None => settled.clone(),
            };
            if context.commit(&commit).await?.is_done() {
                return Ok(());
            }
        }
        Err(ContextError::Busy(key.to_string()))
    }

    /// Adds to a commit what became of a delivery.
    async fn outcome(
        &self,
        context: &ContextHandle,
        commit: Commit,
        view: &MessageView,
        delivery: &Delivery,
    ) -> Result<Commit, ContextError> {
        let (message, now) = (&view.message, self.node.now().await?);
        let record = context.keys().message(message.key());
        let at = now.to_string();
        let commit = commit.is(&record, field::STATUS, view.written_status.as_bytes());
        let reason = match delivery {
            Delivery::Stored | Delivery::Duplicate => {
                let to = message.target_context.unwrap_or(context.id());
                let logs = logs_with(
                    message,
                    now,
                    LogLevel::Info,
                    format!("stored in context {to}"),
                );
                let commit = commit.set(
                    &record,
                    [(field::STORED_AT, at.as_str()), (field::LOGS, &logs)],
                );
                return Ok(match message.status.is_final() {
                    true => commit,
                    false => commit.mark(
                        &context.keys().sent(),
                        next_look_ms(message, now),
                        record.as_bytes(),
                    ),
                });
            }
            Delivery::Refused { reason } => reason,
        };
        let logs = logs_with(message, now, LogLevel::Error, reason);
        let fields = [
            (field::STATUS, MessageStatus::Error.as_str()),
            (field::UPDATED_AT, &at),
            (field::LOGS, &logs),
        ];
        let change = Change {
            who: COORDINATOR,
            what: "refuse message",
            object: &record,
            after: reason,
            ..Change::default()
        };
        let commit = commit
            .set(&record, fields)
            .unmark(&context.keys().sent(), record.as_bytes());
        Ok(change.noted(commit, &context.keys().audit()))
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

/// Why a message on `msg_out` is not sent, if so.
fn not_sent(view: &MessageView) -> Option<String> {
    let message = &view.message;
    if view.stored_at.is_some() {
        return Some("it was sent before".to_owned());
    }
    let result = view.re.is_some() || message.message_type == MessageType::Result;
    let over = message.status.is_final() && !result;
    over.then(|| format!("it is over: {}", message.status))
}
