//! Removes entries of outboxes that are not sent: those of nodes that are absent, or that this node trusts no more. Their
//! messages end at their timeouts, and the records of received ones are deleted.

use std::collections::BTreeMap;

use meshwork_broker::context::{Commit, Database, Read};
use meshwork_model::context::NodeId;
use meshwork_model::mesh::{Entry, Item, PeerState};

use super::Exchange;
use crate::context::ContextError;

/// Time between two sweeps, in milliseconds.
const SWEEP_MS: u64 = 60_000;
/// Entries of an outbox in one sweep.
const PAGE: usize = 100;

/// Places in outboxes where the next sweep begins.
#[derive(Debug, Default)]
pub(super) struct Swept {
    next_ms: u64,
    places: BTreeMap<NodeId, usize>,
}

impl Exchange {
    /// Sweeps a page of each outbox that is not sent, if the last sweep was some time ago.
    pub(super) async fn sweep(&mut self, mono_ms: u64) -> Result<(), ContextError> {
        if mono_ms < self.swept.next_ms {
            return Ok(());
        }
        self.swept.next_ms = mono_ms.saturating_add(SWEEP_MS);
        let all = self.node.peers().await?;
        for node in all.iter().map(|peer| peer.card.node) {
            let known = self.peers.get(&node);
            if known.is_some_and(|known| !known.line.is_absent()) {
                self.swept.places.remove(&node);
                continue;
            }
            let from = self.swept.places.get(&node).copied().unwrap_or(0);
            let next = self.sweep_outbox(node, from).await;
            let next = self.unless_damaged(next, mono_ms)?.unwrap_or(0);
            self.swept.places.insert(node, next);
        }
        Ok(())
    }

    /// Returns the place of the next sweep.
    async fn sweep_outbox(&self, to: NodeId, from: usize) -> Result<usize, ContextError> {
        let (store, outbox) = (self.node.store(), self.node.keys().peer_outbox(to));
        let page = Read::Members(PAGE, from);
        let members = store.elements(Database::Node, &outbox, page).await?;
        let (mut commit, mut kept) = (Commit::default(), 0);
        for member in &members {
            let entry = std::str::from_utf8(member).ok();
            let is_open = match entry.and_then(|text| text.parse::<Entry>().ok()) {
                Some(Entry::Message { of, .. }) => self.next_item(to, of).await?.is_some(),
                Some(Entry::State { of, at }) => {
                    let answer = self.node.answer_of(to, of, at).await?;
                    !matches!(answer, Item::State { state, .. } if state == PeerState::Unknown)
                }
                None => false,
            };
            match is_open {
                true => kept += 1,
                false => commit = commit.unmark(&outbox, member),
            }
        }
        if kept < members.len() {
            let _ = store.commit(Database::Node, &commit).await?;
        }
        Ok(match members.len() < PAGE {
            true => 0,
            false => from + kept,
        })
    }
}
