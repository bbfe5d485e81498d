//! Frames of other nodes: verified, taken apart, and answered from the records of their messages.

use meshwork_broker::context::{Commit, Database};
use meshwork_macros::boxed;
use meshwork_model::actor_key::KeyBytes;
use meshwork_model::context::{NodeId, Reason, field};
use meshwork_model::keys::context::ContextId;
use meshwork_model::mesh::{Frame, HeldEntry, Item, MAX_ITEMS, PeerState, SentFrom};

use super::Exchange;
use super::exchange::{Came, Known};
use crate::context::messages::cancel::CancelTaken;
use crate::context::messages::foreign::notice_of;
use crate::context::{ContextError, Delivery, Node, Origin, Site};

/// Code of frames beyond the rate of a node, and of messages beyond its limits. They are dropped, and sent again.
const BUSY: &str = "busy";
/// Code of a message that comes again within a minute after its refusal. It gets no answer.
const REPEATED: &str = "repeated";
/// Time between two records of the last frame of a node, in milliseconds.
const NOTE_MS: u64 = 5_000;

/// Items of a node that are handled in one go: the rest of a long frame waits until other nodes have had theirs.
const SHARE: usize = 100;
/// The most bytes of items of a node that wait, beside one frame: 4 MiB.
const WAITING_BYTES: usize = 4 * 1024 * 1024;

impl Known {
    /// Lets the items of a frame wait. Returns false if too many wait: the frame is dropped, and sent again.
    fn waits(&mut self, came: Came, items: Vec<Item>) -> bool {
        let bytes: usize = self.waiting.iter().map(|(_, item)| item.length()).sum();
        let is_full = self.waiting.len() + items.len() > MAX_ITEMS || bytes > WAITING_BYTES;
        if is_full && !self.waiting.is_empty() {
            return false;
        }
        self.waiting
            .extend(items.into_iter().map(|item| (came, item)));
        true
    }
}

impl Exchange {
    /// Receives a payload that came from a daemon. Whatever is refused is counted, and stores nothing.
    ///
    /// # Errors
    /// The server is unreachable: the sender repeats what it needs.
    #[boxed]
    pub async fn receive(
        &mut self,
        daemon: KeyBytes,
        payload: &[u8],
        mono_ms: u64,
    ) -> Result<(), ContextError> {
        self.read_peers(mono_ms).await?;
        let now = self.node.store().now().await?;
        let frame = match self.opened(daemon, payload, now, mono_ms) {
            Ok(frame) => frame,
            Err((node, code)) => {
                self.refuse(node, code);
                return Ok(());
            }
        };
        let noted = self.heard(&frame, now, mono_ms).await;
        self.unless_damaged(noted, mono_ms)?;
        let (from, sent_ms) = (frame.src, frame.sent_ms);
        let came = Came {
            from,
            sent_ms,
            now,
            mono_ms,
        };
        let Some(known) = self.peers.get_mut(&from) else {
            return Ok(());
        };
        let is_first = known.waiting.is_empty();
        if !known.waits(came, frame.items) {
            self.refuse(Some(from), BUSY);
        } else if is_first {
            self.handle(from).await?;
        }
        Ok(())
    }

    /// Handles items of all nodes that wait, a share of each.
    pub(super) async fn handle_waiting(&mut self) -> Result<(), ContextError> {
        let waits = |(node, known): (&NodeId, &Known)| (!known.waiting.is_empty()).then_some(*node);
        let nodes: Vec<_> = self.peers.iter().filter_map(waits).collect();
        for node in nodes {
            self.handle(node).await?;
        }
        Ok(())
    }

    /// Handles the share of a node.
    async fn handle(&mut self, from: NodeId) -> Result<(), ContextError> {
        for _ in 0..SHARE {
            let known = self.peers.get_mut(&from);
            let Some((came, item)) = known.and_then(|known| known.waiting.pop_front()) else {
                return Ok(());
            };
            match self.take(&came, item).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    tracing::warn!(node = %from, %error, "item of another node not handled");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Opens a frame with the key of the node that it names, if this is a node of the daemon that sent the bytes. Several
    /// nodes may share a daemon. Returns the code of a refusal otherwise, and the node that the frame names if it is one of
    /// that daemon.
    fn opened(
        &mut self,
        daemon: KeyBytes,
        payload: &[u8],
        now: u64,
        mono_ms: u64,
    ) -> Result<Frame, (Option<NodeId>, &'static str)> {
        let (peers, mut is_over, mut named) = (&self.peers, false, None);
        let key_of = |src: NodeId| {
            let known: Option<&Known> = peers.get(&src);
            let known = known.filter(|known| known.peer.card.daemon == daemon)?;
            named = Some(src);
            // Before the signature is verified, which costs more.
            is_over = known.rate.is_over(mono_ms);
            (!is_over).then_some(known.peer.card.key)
        };
        let frame = Frame::open(payload, self.me, now, key_of);
        let frame = frame.map_err(|fault| match is_over {
            true => (named, BUSY),
            false => (named, fault.code()),
        })?;
        // Counted after the signature is verified: another node of the daemon cannot use up this rate.
        if let Some(known) = self.peers.get_mut(&frame.src) {
            known.rate.count(mono_ms);
        }
        Ok(frame)
    }

    /// Counts a refusal.
    fn refuse(&mut self, node: Option<NodeId>, code: &str) {
        *self.refused.entry(code.to_owned()).or_default() += 1;
        let counted = self.uncounted.entry((node, code.to_owned()));
        *counted.or_default() += 1;
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
        let (record, seen) = (self.node.keys().peer(frame.src), now.to_string());
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

    async fn take(&mut self, came: &Came, item: Item) -> Result<(), ContextError> {
        let from = came.from;
        let reply = match item {
            Item::Message(envelope) => self.take_message(came, &envelope).await?,
            Item::Result {
                re,
                from: result,
                json,
            } => {
                let both = (&re, &result);
                let taken = self.node.receive_result(self.me, from, both, &json).await?;
                if let Delivery::Refused(reason) = taken {
                    self.refuse(Some(from), &reason.code);
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
            Item::Cancel { of, at } => Some(self.take_cancel(came, of, at).await?),
            Item::Ping { id } => Some(Item::Pong {
                id,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            Item::Pong { id, version } => {
                self.take_pong(came, id, &version).await?;
                None
            }
        };
        if let (Some(reply), Some(known)) = (reply, self.peers.get_mut(&from)) {
            known.reply(reply, came.mono_ms);
        }
        Ok(())
    }

    /// Records the answer to the last ping.
    async fn take_pong(&mut self, came: &Came, id: u64, version: &str) -> Result<(), ContextError> {
        let Some(known) = self.peers.get_mut(&came.from) else {
            return Ok(());
        };
        let Some(round_trip) = known.line.ponged(id, came.mono_ms) else {
            return Ok(());
        };
        let sent = came.now.saturating_sub(round_trip / 2);
        let offset = came.sent_ms.cast_signed() - sent.cast_signed();
        let (record, name) = (
            self.node.keys().peer(came.from),
            known.peer.name.to_string(),
        );
        let fields = [
            (field::PONG_MS, came.now.to_string()),
            (field::ROUND_TRIP_MS, round_trip.to_string()),
            (field::PONG_OFFSET_MS, offset.to_string()),
            (field::VERSION, version.to_owned()),
        ];
        let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
        let commit = Commit::default()
            .is(&record, field::NAME, name.as_bytes())
            .set(&record, fields);
        let _ = self.node.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Takes a message. Returns the answer; none for an envelope of which nobody knows whose it is, and none if the message
    /// was refused within the last minute.
    async fn take_message(
        &mut self,
        came: &Came,
        envelope: &[u8],
    ) -> Result<Option<Item>, ContextError> {
        let from = came.from;
        let (of, at) = match Node::claimed(from, envelope) {
            Ok(claimed) => claimed,
            Err(refusal) => {
                self.refuse(Some(from), refusal.code());
                return Ok(None);
            }
        };
        let known = self.peers.get(&from);
        if known.is_some_and(|known| known.refusals.is_recent(&of, came.mono_ms)) {
            self.refuse(Some(from), REPEATED);
            return Ok(None);
        }
        if !self.has_room(from, envelope.len(), came.mono_ms).await? {
            let answer = self.node.answer_of(from, of, at).await?;
            let unknown = matches!(
                answer,
                Item::State {
                    state: PeerState::Unknown,
                    ..
                }
            );
            if !unknown {
                return Ok(Some(answer));
            }
            self.refuse(Some(from), BUSY);
            let (state, reason) = (PeerState::Busy, None);
            return Ok(Some(Item::State {
                of,
                at,
                state,
                reason,
            }));
        }
        let taken = self.node.receive_envelope(self.me, &of, from, envelope);
        let (state, reason) = match taken.await? {
            Delivery::Stored => {
                let bytes = envelope.len();
                self.held(from, HeldEntry { of, at, bytes }).await?;
                self.node.signals().incoming.notify_one();
                (PeerState::Stored, None)
            }
            Delivery::Duplicate => return Ok(Some(self.node.answer_of(from, of, at).await?)),
            Delivery::Refused(reason) => {
                self.refuse(Some(from), &reason.code);
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

    /// Takes a request to cancel a message of another node, and returns the answer.
    async fn take_cancel(
        &mut self,
        came: &Came,
        of: SentFrom,
        at: ContextId,
    ) -> Result<Item, ContextError> {
        let from = came.from;
        // A message that has not arrived counts as a short one.
        let remembers = self.has_room(from, 0, came.mono_ms).await?;
        let origin = Origin::sent_from(from, &of);
        match self.node.take_cancel(&origin, at, remembers).await? {
            CancelTaken::Known => {}
            CancelTaken::Remembered => self.held(from, HeldEntry { of, at, bytes: 0 }).await?,
            CancelTaken::Full => {
                self.refuse(Some(from), BUSY);
                let (state, reason) = (PeerState::Busy, None);
                return Ok(Item::State {
                    of,
                    at,
                    state,
                    reason,
                });
            }
        }
        self.node.answer_of(from, of, at).await
    }

    /// Counts a message against the limits of its node.
    async fn held(&mut self, from: NodeId, entry: HeldEntry) -> Result<(), ContextError> {
        self.node.hold(from, entry).await?;
        let known = self.peers.get_mut(&from);
        if let Some(held) = known.and_then(|known| known.held.as_mut()) {
            held.add(entry.bytes);
        }
        Ok(())
    }

    /// Takes the state of a message of this node, as the node to which it went tells it.
    async fn take_state(
        &self,
        from: NodeId,
        (of, at): (SentFrom, ContextId),
        state: PeerState,
        reason: Option<Reason>,
    ) -> Result<(), ContextError> {
        let Some(notice) = notice_of(state, reason) else {
            return Ok(());
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
