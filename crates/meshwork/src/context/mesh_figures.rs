//! Figures of the exchange with other nodes, for people and for metrics.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_broker::context::{Commit, Committed, Database, Read};
use meshwork_model::context::NodeId;

use super::{ContextError, Node, Peer, TRIES};

/// Numbers of refused frames and messages, by code.
pub type RefusedCounts = BTreeMap<String, u64>;

/// Figures of all nodes that this node knows.
#[derive(Debug, Clone, Default)]
pub struct MeshFigures {
    /// Time of the server, in milliseconds since 1970.
    pub now_ms: u64,
    /// Nodes, by name.
    pub peers: Vec<PeerFigures>,
    /// Refused frames of no known node.
    pub refused: RefusedCounts,
}

/// A node, and what waits for it and was refused from it.
#[derive(Debug, Clone)]
pub struct PeerFigures {
    /// The node.
    pub peer: Peer,
    /// Number of messages and answers that wait for the node.
    pub waiting: u64,
    /// Refused frames and messages of the node.
    pub refused: RefusedCounts,
}

impl Node {
    /// Returns the figures of all nodes that this node knows.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn mesh_figures(&self) -> Result<MeshFigures, ContextError> {
        let peers = self.peers().await?;
        let mut refused = self.refused_counts().await?;
        let mut figures = MeshFigures {
            now_ms: self.store().now().await?,
            refused: refused.remove("").unwrap_or_default(),
            ..MeshFigures::default()
        };
        for peer in peers {
            let node = peer.card.node;
            figures.peers.push(PeerFigures {
                waiting: self.waiting_for(node).await?,
                refused: refused.remove(&node.to_string()).unwrap_or_default(),
                peer,
            });
        }
        Ok(figures)
    }

    /// Returns the number of messages and answers that wait for a node.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn waiting_for(&self, node: NodeId) -> Result<u64, ContextError> {
        let outbox = self.keys().peer_outbox(node);
        let count = self
            .store()
            .elements(Database::Node, &outbox, Read::Count)
            .await?;
        let count = count.first().and_then(|it| std::str::from_utf8(it).ok());
        Ok(count.and_then(|it| it.parse().ok()).unwrap_or(0))
    }

    /// Returns the counts of refusals by node; the empty text: frames of no known node.
    async fn refused_counts(&self) -> Result<BTreeMap<String, RefusedCounts>, ContextError> {
        let fields = self
            .store()
            .hash(Database::Node, &self.keys().mesh_refused())
            .await?;
        let mut counts = BTreeMap::<String, RefusedCounts>::new();
        for (name, value) in fields {
            let value = std::str::from_utf8(&value).ok();
            let value = value.and_then(|text| text.parse::<u64>().ok());
            if let (Some((node, code)), Some(value)) = (name.split_once('/'), value) {
                let of_node = counts.entry(node.to_owned()).or_default();
                of_node.insert(code.to_owned(), value);
            }
        }
        Ok(counts)
    }

    /// Adds to the counts of refusals. Each is of a node, or of none that is known.
    pub(crate) async fn add_refused(
        &self,
        new: &BTreeMap<(Option<NodeId>, String), u64>,
    ) -> Result<(), ContextError> {
        let key = &self.keys().mesh_refused();
        for _ in 0..TRIES {
            let known = self.store().hash(Database::Node, key).await?;
            let mut commit = Commit::default();
            for ((node, code), count) in new {
                let node = node.map_or_else(String::new, |node| node.to_string());
                let name = format!("{node}/{code}");
                let before = known.iter().find(|(field, _)| *field == name);
                let before = before.map_or(&[][..], |(_, value)| value.as_slice());
                let number = std::str::from_utf8(before).ok();
                let number: u64 = number.and_then(|text| text.parse().ok()).unwrap_or(0);
                let sum = number.saturating_add(*count).to_string();
                commit = commit.is(key, &name, before).set(key, [(&name, &sum)]);
            }
            if let Committed::Done = self.store().commit(Database::Node, &commit).await? {
                return Ok(());
            }
        }
        Err(ContextError::Busy(key.to_owned()))
    }
}
