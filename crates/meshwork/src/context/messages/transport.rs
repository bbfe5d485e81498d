//! Transport of messages between contexts. Inside a node both are in one store.

use futures_util::future::BoxFuture;
use meshwork_model::context::{Message, MessageEvent, NodeId};
use meshwork_model::keys::context::{ContextId, MessageKey};

use crate::context::{ContextError, Node, Origin, Site};

/// A message to deliver.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Origin, the same in each attempt. The transport is responsible for its node and context: they decide whose result
    /// a message may bring.
    pub origin: Origin,
    /// Context that receives it.
    pub to: ContextId,
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
    /// The target refuses the message permanently.
    Refused {
        /// Reason.
        reason: String,
    },
}

/// Transports messages between contexts. Each method may be called again with the same arguments.
pub trait Transport: Send + Sync + 'static {
    /// Returns true if the transport reaches a node.
    fn reaches(&self, node: NodeId) -> bool;

    /// Delivers a message to its target. An error is temporary: the message is delivered again later.
    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<Delivery, ContextError>>;

    /// Notifies the sender of a message that `from` has acknowledged, read or refused the message. The transport is
    /// responsible for `from`: only the context to which a message went may change its status.
    fn notify<'a>(
        &'a self,
        from: Site,
        origin: &'a Origin,
        event: MessageEvent,
        reason: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ContextError>>;
}

/// Transport inside one node.
#[derive(Debug, Clone)]
pub struct LocalTransport {
    node: Node,
    id: NodeId,
}

impl LocalTransport {
    /// Creates the transport between the contexts of `node`.
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
        from: Site,
        origin: &'a Origin,
        event: MessageEvent,
        reason: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ContextError>> {
        Box::pin(async move {
            // The record of a plain client may claim another node.
            if origin.node != self.id {
                return Ok(());
            }
            let notified = self.node.notified(self.id, from, origin, event, reason);
            match notified.await {
                // The sender's own coordinator finds the damage, and ends the message.
                Err(error) if error.is_permanent() => Ok(()),
                notified => notified,
            }
        })
    }
}
