//! Actors for tests of flows: 12 is an admin of context 7, 7 a reader.

use meshwork::context::{Identity, Node, new_key};
use meshwork::flow::FlowSession;
use meshwork_broker::Broker;
use meshwork_model::access::Role;
use meshwork_model::keys::context::{ActorId, ContextId, ContextLayout};

/// The context of the tests.
const CONTEXT: u32 = 7;

/// An actor of the node with this number.
pub(crate) async fn actor(node: &Broker, id: u32) -> Identity {
    let (node, key) = (Node::of(node), new_key());
    node.trust(key.public(), Some(ActorId(id))).await.unwrap();
    node.identify(key).await.unwrap()
}

/// Makes the context and both actors: the admin, and the reader.
pub(crate) async fn found(node: &Broker, layout: ContextLayout) -> (Identity, Identity) {
    let (admin, reader) = (actor(node, 12).await, actor(node, 7).await);
    let context = Node::of(node)
        .create_context(&admin, ContextId::new(CONTEXT), Some(layout))
        .await
        .unwrap();
    context
        .grant(&admin, Role::Reader, reader.id())
        .await
        .unwrap();
    (admin, reader)
}

/// The flows of the context for one of them.
pub(crate) async fn session(node: &Broker, me: &Identity) -> FlowSession {
    let (node, id) = (Node::of(node), ContextId::new(CONTEXT).unwrap());
    let context = node.context(id).await.unwrap();
    context.flows(me).await.unwrap()
}
