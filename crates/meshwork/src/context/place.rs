//! Places of new contexts on a Cluster: the number of a context decides its slot, and so its node.

use meshwork_macros::boxed;
use std::collections::{BTreeMap, BTreeSet};

use meshwork_broker::SlotMap;
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};

use super::{ContextError, ContextHandle, Node};

/// Greatest number for which a slot is computed. Each node of a Cluster with a slot has many numbers below.
const MAX_NUMBER: u32 = 1_000_000;

/// The number or the place of a new context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextPlace {
    /// This number.
    Number(ContextId),
    /// The next free number; on a Cluster, the next one of the node with the fewest contexts.
    LeastLoaded,
    /// The next free number of the node that has this context.
    Near(ContextId),
    /// The next free number of this node of a Cluster, as `host:port`.
    On(String),
}

impl From<Option<ContextId>> for ContextPlace {
    fn from(number: Option<ContextId>) -> Self {
        number.map_or(Self::LeastLoaded, Self::Number)
    }
}

/// Nodes of a Cluster for a new context.
pub(super) struct Nodes {
    slots: SlotMap,
    chosen: BTreeSet<String>,
}

/// Free numbers of some nodes of a Cluster, or of a store.
pub(super) struct Numbers {
    taken: BTreeSet<ContextId>,
    nodes: Option<Nodes>,
}

impl Numbers {
    pub(super) fn new(taken: BTreeSet<ContextId>, nodes: Option<Nodes>) -> Self {
        Self { taken, nodes }
    }

    /// Returns the free numbers in order.
    pub(super) fn free(&self) -> impl Iterator<Item = ContextId> {
        let numbers = (1..=MAX_NUMBER).filter_map(ContextId::new);
        numbers.filter(|id| !self.taken.contains(id) && self.fits(*id))
    }

    fn fits(&self, id: ContextId) -> bool {
        let Some(Nodes { slots, chosen }) = &self.nodes else {
            return true;
        };
        let keys = ContextKeys::new(id, ContextLayout::Prefix);
        let node = slots.node_of(keys.prefix());
        node.is_some_and(|node| chosen.contains(node))
    }
}

impl Node {
    /// Returns the nodes of a Cluster with their slots; `None` for another store.
    ///
    /// # Errors
    /// No node of the Cluster answers.
    #[boxed]
    pub async fn slots(&self) -> Result<Option<SlotMap>, ContextError> {
        Ok(self.broker().slots().await?)
    }

    /// Returns the nodes of a Cluster for a new context; `None` for another store.
    pub(super) async fn nodes_for(
        &self,
        place: &ContextPlace,
        registry: &[ContextHandle],
    ) -> Result<Option<Nodes>, ContextError> {
        if let ContextPlace::Near(id) = place {
            self.context(*id).await?;
        }
        let Some(slots) = self.slots().await? else {
            return match place {
                ContextPlace::On(_) => Err(ContextError::NoCluster),
                _ => Ok(None),
            };
        };
        let chosen: BTreeSet<&str> = match place {
            ContextPlace::Near(id) => {
                let keys = ContextKeys::new(*id, ContextLayout::Prefix);
                slots.node_of(keys.prefix()).into_iter().collect()
            }
            ContextPlace::On(node) => {
                let known = slots.nodes().find(|known| known == node);
                let unknown = || ContextError::NoClusterNode {
                    given: node.clone(),
                    known: slots.nodes().collect::<Vec<_>>().join(", "),
                };
                BTreeSet::from([known.ok_or_else(unknown)?])
            }
            ContextPlace::LeastLoaded | ContextPlace::Number(_) => least_loaded(&slots, registry),
        };
        let chosen = chosen.into_iter().map(str::to_owned).collect();
        Ok(Some(Nodes { slots, chosen }))
    }
}

/// Returns the nodes with the fewest contexts.
fn least_loaded<'a>(slots: &'a SlotMap, registry: &[ContextHandle]) -> BTreeSet<&'a str> {
    let mut loads: BTreeMap<&str, usize> = slots.nodes().map(|node| (node, 0)).collect();
    for context in registry {
        if let Some(node) = slots.node_of(context.keys().prefix()) {
            *loads.entry(node).or_default() += 1;
        }
    }
    let least = loads.values().min().copied();
    let loads = loads.into_iter();
    let chosen = loads.filter(|(_, load)| Some(*load) == least);
    chosen.map(|(node, _)| node).collect()
}
