//! Frames of other nodes: verified, taken apart, and answered from the records of their messages.

use meshwork_broker::context::{Commit, Database};
use meshwork_model::actor_key::KeyBytes;
use meshwork_model::context::{NodeId, Reason, field};
use meshwork_model::keys::context::{ContextId, NodeKeys};
use meshwork_model::mesh::{Frame, Item, PeerState, SentFrom};

use super::Exchange;
use crate::context::{ContextError, Delivery, Notice, Origin, Site};

/// Greatest number of frames that a node may send in a second. More are dropped, and sent again.
const MAX_FRAMES_A_SECOND: u32 = 100;
/// Time between two records of the last frame of a node, in milliseconds.
const NOTE_MS: u64 = 5_000;

impl Exchange {
    /// Receives a payload that came from a daemon. Whatever is refused is counted, and stores nothing.
    ///
    /// # Errors
    /// The server is unreachable: the sender repeats what it needs.
    pub async fn receive(
        &mut self,
        daemon: KeyBytes,
        payload: &[u8],
        mono_ms: u64,
    ) -> Result<(), ContextError> {
        self.read_peers(mono_ms).await?;
        let now = self.node.store().now().await?;
        let mut of_daemon = self.peers.values_mut();
        let Some(known) = of_daemon.find(|known| known.peer.card.daemon == daemon) else {
            self.refuse("unknown node");
            return Ok(());
        };
        if mono_ms.saturating_sub(known.rate.0) >= 1_000 {
            known.rate = (mono_ms, 0);
        }
        known.rate.1 += 1;
        if known.rate.1 > MAX_FRAMES_A_SECOND {
            self.refuse("busy");
            return Ok(());
        }
        let (node, card) = (known.peer.card.node, &known.peer.card);
        let key = card.key;
        let frame = Frame::open(payload, self.me, now, |src| (src == node).then_some(key));
        let frame = match frame {
            Ok(frame) => frame,
            Err(fault) => {
                self.refuse(&fault.to_string());
                return Ok(());
            }
        };
        self.heard(&frame, now, mono_ms).await?;
        for item in frame.items {
            match self.take(frame.src, item).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    tracing::warn!(node = %frame.src, %error, "item of another node not handled");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Counts a refusal.
    fn refuse(&mut self, code: &str) {
        *self.refused.entry(code.to_owned()).or_default() += 1;
        tracing::debug!(code, "frame of another node refused");
    }

    /// Records that a node has sent a valid frame.
    async fn heard(&mut self, frame: &Frame, now: u64, mono_ms: u64) -> Result<(), ContextError> {
        let Some(known) = self.peers.get_mut(&frame.src) else {
            return Ok(());
        };
        if known.line.heard() {
            tracing::info!(node = %frame.src, name = %known.peer.name, "node is back");
        }
        let is_due = |noted| mono_ms.saturating_sub(noted) >= NOTE_MS;
        if !known.noted.is_none_or(is_due) {
            return Ok(());
        }
        known.noted = Some(mono_ms);
        let offset = frame.sent_ms.cast_signed() - now.cast_signed();
        let (record, seen) = (NodeKeys.peer(frame.src), now.to_string());
        let name = known.peer.name.to_string();
        let commit = Commit::default()
            .is(&record, field::NAME, name.as_bytes())
            .set(
                &record,
                [
                    (field::SEEN_MS, seen.as_str()),
                    (field::OFFSET_MS, &offset.to_string()),
                ],
            );
        let _ = self.node.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    async fn take(&mut self, from: NodeId, item: Item) -> Result<(), ContextError> {
        let reply = match item {
            Item::Message(envelope) => self.take_message(from, &envelope).await?,
            Item::Result {
                re,
                from: result,
                json,
            } => {
                let both = (&re, &result);
                let taken = self.node.receive_result(self.me, from, both, &json).await?;
                if let Delivery::Refused(reason) = taken {
                    self.refuse(&reason.code);
                }
                None
            }
            Item::State {
                of,
                at,
                state,
                reason,
            } => {
                self.take_state(from, (of, at), state, reason).await?;
                None
            }
            Item::Ask { of, at } => Some(self.node.answer_of(from, of, at).await?),
            Item::Ping => {
                if let Some(known) = self.peers.get_mut(&from) {
                    known.line.pong();
                }
                None
            }
        };
        if let (Some(reply), Some(known)) = (reply, self.peers.get_mut(&from)) {
            known.line.reply(reply);
        }
        Ok(())
    }

    /// Takes a message. Returns the answer; none for an envelope of which nobody knows whose it is.
    async fn take_message(
        &mut self,
        from: NodeId,
        envelope: &[u8],
    ) -> Result<Option<Item>, ContextError> {
        let taken = self.node.receive_envelope(self.me, from, envelope).await;
        let taken = match taken {
            Err(ContextError::Envelope(refusal)) => {
                self.refuse(refusal.code());
                return Ok(None);
            }
            taken => taken?,
        };
        let (of, at) = (taken.of, taken.at);
        let (state, reason) = match taken.delivery {
            Delivery::Stored => {
                self.node.signals().incoming.notify_one();
                (PeerState::Stored, None)
            }
            Delivery::Duplicate => return Ok(Some(self.node.answer_of(from, of, at).await?)),
            Delivery::Refused(reason) => {
                self.refuse(&reason.code);
                (PeerState::Refused, Some(reason))
            }
            Delivery::Queued => (PeerState::Busy, None),
        };
        Ok(Some(Item::State {
            of,
            at,
            state,
            reason,
        }))
    }

    /// Takes the state of a message of this node, as the node to which it went tells it.
    async fn take_state(
        &self,
        from: NodeId,
        (of, at): (SentFrom, ContextId),
        state: PeerState,
        reason: Option<Reason>,
    ) -> Result<(), ContextError> {
        let notice = match state {
            PeerState::Stored => Notice::Stored,
            PeerState::Acknowledged => Notice::Acknowledged,
            PeerState::Processed => Notice::Read,
            PeerState::Failed | PeerState::Refused => {
                let unknown = || Reason::new("failed", "the other node gave no reason");
                Notice::Failed(reason.unwrap_or_else(unknown))
            }
            PeerState::Busy => return Ok(()),
            PeerState::Unknown => Notice::Lost,
        };
        let site = Site {
            node: from,
            context: at,
        };
        let origin = Origin::sent_from(self.me, &of);
        match self.node.notified(site, &origin, &notice).await {
            Err(error) if error.is_permanent() => Ok(()),
            notified => notified,
        }
    }
}
