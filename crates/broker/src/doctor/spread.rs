//! Contexts on a Cluster: their numbers on the nodes.

use std::collections::BTreeMap;

use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::number::counted;

use super::nodes::Nodes;
use super::{Finding, Level};
use crate::SlotMap;
use crate::broker::Broker;
use crate::conn::Conn;
use crate::context::{ContextStore, Database};

/// Number of contexts that a node may have more than another one.
const FEW: usize = 3;

/// Compares the nodes of a Cluster. Finds nothing elsewhere.
pub(super) async fn check(conn: &Conn, keys: &JobKeys, nodes: &Nodes) -> Option<Finding> {
    let slots = conn.slots().await.ok()??;
    let store = ContextStore::of(&Broker::new(conn.clone(), keys.clone()));
    let registry = store.node_keys().contexts();
    if nodes.is_silent(&registry) {
        return None;
    }
    let ids = store
        .hash(Database::Node, &registry)
        .await
        .ok()?
        .into_iter();
    let ids: Vec<ContextId> = ids.filter_map(|(id, _)| id.parse().ok()).collect();
    spread(&slots, &ids)
}

fn spread(slots: &SlotMap, ids: &[ContextId]) -> Option<Finding> {
    const CHECK: &str = "spread of contexts";
    const WHY: &str = "the node with the most contexts is the first that is busy";
    let mut loads: BTreeMap<&str, usize> = slots.nodes().map(|node| (node, 0)).collect();
    for id in ids {
        let keys = ContextKeys::new(*id, ContextLayout::Prefix);
        if let Some(node) = slots.node_of(keys.prefix()) {
            *loads.entry(node).or_default() += 1;
        }
    }
    let (least, most) = (loads.values().min()?, loads.values().max()?);
    let each = loads.iter().map(|(node, many)| format!("{many} on {node}"));
    let what = format!(
        "{}: {}",
        counted(ids.len(), "context"),
        each.collect::<Vec<_>>().join(", ")
    );
    // Half as many again as on average.
    let uneven = most * loads.len() * 2 > ids.len() * 3 && most - least > FEW;
    match (ids.is_empty(), uneven) {
        (true, _) => None,
        (false, false) => Some(Finding::ok(CHECK, what)),
        (false, true) => {
            let remedy = "new contexts go to the node with the fewest; `redis-cli --cluster reshard` moves slots, \
                          CLUSTER KEYSLOT names the slot of a context";
            Some(Finding::bad(Level::Hint, CHECK, what, WHY, remedy))
        }
    }
}
