//! Transport of messages between contexts. Inside a node both are in one store; messages to another node wait in the
//! outbox for that node.

use futures_util::future::BoxFuture;
use meshwork_broker::context::{Commit, Database};
use meshwork_macros::boxed;
use meshwork_model::context::{Message, MessageEvent, NodeId, Reason};
use meshwork_model::keys::context::MessageKey;
use meshwork_model::mesh::Entry;

use crate::context::{ContextError, Node, Origin, Site};

/// A message to deliver.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Origin, the same in each attempt. The transport is responsible for its node and context: they decide whose result
    /// a message may bring.
    pub origin: Origin,
    /// Context that receives it.
    pub to: Site,
    /// The message as stored at the sender.
    pub message: Message,
    /// Key of the receiver's message whose result this one claims to have.
    pub re: Option<MessageKey>,
}

/// Outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The target has stored the message.
    Stored,
    /// The target had stored the message before.
    Duplicate,
    /// The transport has stored the message, and delivers it later. The outcome arrives as a [`Notice`].
    Queued,
    /// The target refuses the message permanently.
    Refused(Reason),
}

impl Delivery {
    /// Returns true for a refusal with this code.
    pub(crate) fn is_refused_as(&self, code: &str) -> bool {
        matches!(self, Self::Refused(reason) if reason.code == code)
    }
}

/// A change of a message at its target, for its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The target has stored the message.
    Stored,
    /// The target has taken up the jobs of the message.
    Acknowledged,
    /// The message was read. Job messages are processed by their result alone.
    Read,
    /// The jobs of the message have ended, and the target has stored the result.
    Answered,
    /// The message was refused, or has failed.
    Failed(Reason),
    /// The target has lost the message: it is sent again.
    Lost,
}

impl Notice {
    /// Returns the event in the life of the message; `None` if its status stays.
    #[must_use]
    pub const fn event(&self) -> Option<MessageEvent> {
        match self {
            Self::Stored | Self::Answered | Self::Lost => None,
            Self::Acknowledged => Some(MessageEvent::Acknowledge),
            Self::Read => Some(MessageEvent::Process),
            Self::Failed(_) => Some(MessageEvent::Fail),
        }
    }

    /// Returns the reason of a failure.
    #[must_use]
    pub const fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Transports messages between contexts. Each method may be called again with the same arguments, and waits for no other
/// node.
pub trait Transport: Send + Sync + 'static {
    /// Delivers a message to its target. An error is temporary: the message is delivered again later.
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>>;

    /// Passes the request to cancel a message to its target, which may not have the message yet. The outcome arrives as a
    /// [`Notice`].
    fn cancel<'a>(
        &'a self,
        message: &'a Message,
        origin: &'a Origin,
        to: Site,
    ) -> BoxFuture<'a, Result<Delivery, ContextError>>;

    /// Notifies the sender of a message of a change at `from`. The transport is responsible for `from`: only the context
    /// to which a message went may change its status.
    fn notify<'a>(
        &'a self,
        from: Site,
        origin: &'a Origin,
        notice: &'a Notice,
    ) -> BoxFuture<'a, Result<(), ContextError>>;
}

/// Transport through the store: at once inside the node, and through the outbox of each trusted node.
#[derive(Debug, Clone)]
pub struct StoreTransport {
    node: Node,
    id: NodeId,
}

impl StoreTransport {
    /// Creates the transport of the contexts of `node`.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn new(node: &Node) -> Result<Self, ContextError> {
        let id = node.identity().await?;
        let node = node.clone();
        Ok(Self { node, id })
    }
}

impl StoreTransport {
    /// Adds an entry to the outbox of another node, if this node trusts it.
    async fn queue(&self, to: NodeId, entry: Entry) -> Result<bool, ContextError> {
        if self.node.trusted_peer(to).await?.is_none() {
            return Ok(false);
        }
        let now = self.node.store().now().await?;
        let outbox = self.node.keys().peer_outbox(to);
        let commit = Commit::default().mark(&outbox, now, entry.to_string().as_bytes());
        let _ = self.node.store().commit(Database::Node, &commit).await?;
        self.node.signals().outgoing.notify_one();
        Ok(true)
    }

    /// Queues a message for another node. What it needs there is read from its record when it is sent.
    async fn queue_message(
        &self,
        message: &Message,
        origin: &Origin,
        node: NodeId,
    ) -> Result<Delivery, ContextError> {
        let Some(of) = origin.at_sender() else {
            let reason = Reason::new(Reason::INVALID, "its nonce has another form");
            return Ok(Delivery::Refused(reason));
        };
        // The same in each attempt, so that the message has one entry.
        let queued_ms = u64::from(message.created_at) * 1000;
        let entry = Entry::Message { of, queued_ms };
        Ok(match self.queue(node, entry).await? {
            true => Delivery::Queued,
            false => {
                let text = format!(
                    "there is no way to node {node}: trust its card with `meshwork mesh trust`"
                );
                Delivery::Refused(Reason::new(Reason::NO_ROUTE, text))
            }
        })
    }
}

impl Transport for StoreTransport {
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>> {
        Box::pin(async move {
            match parcel.to.node == self.id {
                true => self.node.receive(self.id, parcel).await,
                false => {
                    let (message, origin) = (&parcel.message, &parcel.origin);
                    self.queue_message(message, origin, parcel.to.node).await
                }
            }
        })
    }

    fn cancel<'a>(
        &'a self,
        message: &'a Message,
        origin: &'a Origin,
        to: Site,
    ) -> BoxFuture<'a, Result<Delivery, ContextError>> {
        Box::pin(async move {
            if to.node != self.id {
                return self.queue_message(message, origin, to.node).await;
            }
            self.node.cancel_here(self.id, origin, to).await?;
            Ok(Delivery::Stored)
        })
    }

    fn notify<'a>(
        &'a self,
        from: Site,
        origin: &'a Origin,
        notice: &'a Notice,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        Box::pin(async move {
            if origin.node != self.id {
                // The record of a plain client may claim any node. What is sent is read from the record.
                let at = from.context;
                let entry = origin.at_sender().map(|of| Entry::State { of, at });
                if let Some(entry) = entry {
                    self.queue(origin.node, entry).await?;
                }
                return Ok(());
            }
            match self.node.notified(from, origin, notice).await {
                // The sender's own coordinator finds the damage, and ends the message.
                Err(error) if error.is_permanent() => Ok(()),
                notified => notified,
            }
        })
    }
}
