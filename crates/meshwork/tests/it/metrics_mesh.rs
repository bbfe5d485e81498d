//! The records of another node, as a supervisor writes them, for the metrics of other nodes.

use std::collections::BTreeMap;

use crate::worker_support::raw;
use meshwork::Client;
use meshwork::context::{Node, new_key};
use meshwork_model::actor_key::KeyBytes;
use meshwork_model::context::NodeId;
use meshwork_model::mesh::Card;

/// Metrics of other nodes.
pub(crate) const NAMES: [&str; 5] = [
    "meshwork_mesh_peer_trusted",
    "meshwork_mesh_last_frame_age_seconds",
    "meshwork_mesh_clock_offset_seconds",
    "meshwork_mesh_waiting_messages",
    "meshwork_mesh_refused",
];

/// Trusts a node, and writes what is known of it.
pub(crate) async fn a_node_is_known(client: &Client) {
    let (node, key) = (Node::of(client.broker()), new_key());
    let created_at = node.time().await.unwrap();
    let card = Card {
        node: NodeId([2; 32]),
        key: key.public(),
        daemon: KeyBytes([3; 32]),
        created_at,
        expires_at: created_at + 1_000,
    };
    let card = card.seal(&key, None);
    let name = "bob".parse().unwrap();
    node.trust_node(card.as_bytes(), &name).await.unwrap();
    let id = NodeId([2; 32]).to_string();
    let (record, outbox) = (format!("mw:peer:{id}"), format!("mw:peer-out:{id}"));
    let refused = format!("{id}/tampered");
    let fields = ["HSET", &record, "seen_ms", "1000", "offset_ms", "-1500"];
    raw::<()>(client, &fields).await;
    raw::<()>(client, &["ZADD", &outbox, "1", "entry"]).await;
    raw::<()>(client, &["HSET", "mw:mesh-refused", &refused, "3"]).await;
}

/// The values of that node.
pub(crate) fn check(last: &BTreeMap<String, f64>) {
    let offset = r#"meshwork_mesh_clock_offset_seconds{peer="bob"}"#;
    assert_eq!(last[offset], -1.5);
    let refused = r#"meshwork_mesh_refused_total{peer="bob",reason="tampered"}"#;
    assert_eq!(last[refused], 3.0);
}
