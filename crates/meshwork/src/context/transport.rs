//! Transport of messages between contexts. Inside a node both are in one store.

use futures_util::future::BoxFuture;
use meshwork_model::context::{Message, MessageEvent, NodeId};
use meshwork_model::keys::context::{ContextId, MessageKey};

use super::{ContextError, Node, Origin};

/// A message on its way.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Its origin, the same in each attempt.
    pub origin: Origin,
    /// The context that it goes to.
    pub to: ContextId,
    /// The message, as it stands at its sender.
    pub message: Message,
    /// The message at its target that it brings the result of.
    pub re: Option<MessageKey>,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The target has stored it.
    Stored,
    /// The target had stored it before.
    Duplicate,
    /// The target does not take it, and will not.
    Refused {
        /// Why not.
        reason: String,
    },
}

/// Carries messages between contexts. Each method may be called again with the same arguments.
pub trait Transport: Send + Sync + 'static {
    /// True if it reaches a node.
    fn reaches(&self, node: NodeId) -> bool;

    /// Brings a message to its target. An error is temporary: the message is delivered again later.
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>>;

    /// Tells the sender of a message that it was taken up, or processed.
    fn notify<'a>(
        &'a self,
        origin: &'a Origin,
        event: MessageEvent,
    ) -> BoxFuture<'a, Result<(), ContextError>>;
}

/// The transport inside one node.
#[derive(Debug, Clone)]
pub struct LocalTransport {
    node: Node,
    id: NodeId,
}

impl LocalTransport {
    /// The transport between the contexts of `node`.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn new(node: &Node) -> Result<Self, ContextError> {
        let id = node.identity().await?;
        let node = node.clone();
        Ok(Self { node, id })
    }
}

impl Transport for LocalTransport {
    fn reaches(&self, node: NodeId) -> bool {
        node == self.id
    }

    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>> {
        Box::pin(self.node.receive(self.id, parcel))
    }

    fn notify<'a>(
        &'a self,
        origin: &'a Origin,
        event: MessageEvent,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        Box::pin(self.node.notified(origin, event))
    }
}
