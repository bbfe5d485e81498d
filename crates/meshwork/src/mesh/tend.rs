//! Upkeep of the exchange: counts of refusals for commands and metrics, and of stored messages for the limits.

use std::collections::BTreeMap;

use meshwork_model::context::NodeId;
use meshwork_model::mesh::Held;

use super::Exchange;
use super::exchange::Known;
use crate::context::ContextError;

/// Time between two records of the counts of refusals, in milliseconds.
const COUNTS_MS: u64 = 2_000;
/// Greatest number of counts in a record: each has two steps of a commit.
const COUNTS: usize = 100;
/// Time between two counts of the messages of a node that are not processed, in milliseconds.
const HELD_MS: u64 = 5_000;
/// The same for a node that has reached a limit.
const FULL_MS: u64 = 1_000;

impl Exchange {
    /// Records what was refused, and counts the messages that are not processed, each if that was some time ago.
    pub(super) async fn tend(&mut self, mono_ms: u64) -> Result<(), ContextError> {
        if !self.uncounted.is_empty() && mono_ms >= self.counts_at {
            let new = self.uncounted.iter().take(COUNTS);
            let new: BTreeMap<_, _> = new.map(|(of, count)| (of.clone(), *count)).collect();
            let added = self.node.add_refused(&new).await;
            self.unless_damaged(added, mono_ms)?;
            self.uncounted.retain(|of, _| !new.contains_key(of));
            self.counts_at = mono_ms.saturating_add(COUNTS_MS);
        }
        let is_due = |known: &Known| {
            let since = mono_ms.saturating_sub(known.counted);
            match known.held {
                None => true,
                Some(held) => held.messages > 0 && since >= HELD_MS,
            }
        };
        let due = self.peers.iter().filter(|(_, known)| is_due(known));
        let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
        for node in due {
            self.count_held(node, mono_ms).await?;
        }
        Ok(())
    }

    async fn count_held(&mut self, node: NodeId, mono_ms: u64) -> Result<(), ContextError> {
        let held = self.node.held_for(node).await;
        // Without the list, no message of the node counts.
        let held = self.unless_damaged(held, mono_ms)?.unwrap_or_default();
        if let Some(known) = self.peers.get_mut(&node) {
            (known.held, known.counted) = (Some(held), mono_ms);
        }
        Ok(())
    }

    /// Returns true if a message of this length may be stored for a node. Counts again before it refuses one.
    pub(super) async fn has_room(
        &mut self,
        node: NodeId,
        bytes: usize,
        mono_ms: u64,
    ) -> Result<bool, ContextError> {
        let Some(known) = self.peers.get(&node) else {
            return Ok(false);
        };
        let is_old = mono_ms.saturating_sub(known.counted) >= FULL_MS;
        let takes = |held: Option<Held>| held.map(|held| held.takes(bytes));
        match takes(known.held) {
            Some(true) => return Ok(true),
            Some(false) if !is_old => return Ok(false),
            _ => self.count_held(node, mono_ms).await?,
        }
        let known = self.peers.get(&node);
        Ok(known.and_then(|known| takes(known.held)) == Some(true))
    }
}
