//! The exchange of frames with other nodes: outboxes become frames, and frames become messages, notices and answers. All
//! decisions are in `meshwork_model::mesh`; all state that matters is in the store.

use std::collections::BTreeMap;

use meshwork_broker::context::{Commit, Database, Read};
use meshwork_model::actor_key::{KeyBytes, SecretKey};
use meshwork_model::context::NodeId;
use meshwork_model::keys::context::NodeKeys;
use meshwork_model::mesh::{Draft, Entry, Frame, Item, Line, Sent, SentFrom, Step, next_step};

use super::refusals::Noted;
use super::sweep::Swept;
use crate::context::{ContextError, Node, Peer};

/// Number of entries of an outbox that are read at once. More fit into a frame only if they are small.
const PAGE: usize = 100;
/// Number of entries that are due at once after a restart of the daemon.
const RESENT: usize = 1_000;
/// Time until the cards of other nodes are read again, in milliseconds: a revocation works after this time.
const READ_PEERS_MS: u64 = 2_000;

/// A frame that is ready to be sent.
#[derive(Debug)]
pub struct Outbound {
    /// The receiver.
    pub to: NodeId,
    /// Key of the receiver's daemon.
    pub daemon: KeyBytes,
    /// The frame.
    pub bytes: Vec<u8>,
    /// Entries of the outbox in the frame, each with the time of its next attempt, if there is one.
    marks: Vec<(Vec<u8>, Option<u64>)>,
    /// True if the frame needs an answer.
    asks: bool,
}

/// Another node, and the exchange with it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) peer: Peer,
    pub(super) line: Line,
    /// Time at which its last frame was recorded.
    pub(super) noted: Option<u64>,
    /// Frames in the second that began at this time.
    pub(super) rate: (u64, u32),
}

impl Known {
    fn new(peer: Peer) -> Self {
        Self {
            peer,
            line: Line::default(),
            noted: None,
            rate: (0, 0),
        }
    }
}

/// The exchange of frames of one node. `mono_ms` in its calls is a clock in milliseconds that never goes back.
#[derive(Debug)]
pub struct Exchange {
    pub(super) node: Node,
    pub(super) me: NodeId,
    key: SecretKey,
    pub(super) peers: BTreeMap<NodeId, Known>,
    read_peers_at: u64,
    /// Numbers of refused frames and envelopes, by code.
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) noted: Noted,
    pub(super) swept: Swept,
}

impl Exchange {
    /// Creates the exchange of a node, whose frames are signed with `key`.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn new(node: &Node, key: SecretKey) -> Result<Self, ContextError> {
        Ok(Self {
            me: node.identity().await?,
            node: node.clone(),
            key,
            peers: BTreeMap::new(),
            read_peers_at: 0,
            refused: BTreeMap::new(),
            noted: Noted::default(),
            swept: Swept::default(),
        })
    }

    /// Returns the number of refused frames and envelopes, by code.
    #[must_use]
    pub const fn refused(&self) -> &BTreeMap<String, u64> {
        &self.refused
    }

    /// Looks into all outboxes at the next call of [`Self::outbound`].
    pub fn wake(&mut self) {
        for known in self.peers.values_mut() {
            known.line.wake();
        }
    }

    /// Reads the cards of other nodes, if that was some time ago.
    pub(super) async fn read_peers(&mut self, mono_ms: u64) -> Result<(), ContextError> {
        if mono_ms < self.read_peers_at {
            return Ok(());
        }
        let now = self.node.store().now().await? / 1000;
        let mut read = self.node.peers().await?;
        read.retain(|peer| peer.is_trusted(now));
        self.peers
            .retain(|node, _| read.iter().any(|peer| peer.card.node == *node));
        for peer in read {
            match self.peers.get_mut(&peer.card.node) {
                Some(known) => known.peer = peer,
                None => {
                    self.peers.insert(peer.card.node, Known::new(peer));
                }
            }
        }
        self.read_peers_at = mono_ms.saturating_add(READ_PEERS_MS);
        self.note_refusals(mono_ms).await?;
        self.sweep(mono_ms).await
    }

    /// Makes the entries of all outboxes due: the daemon has lost what it had not sent.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn resend(&mut self) -> Result<(), ContextError> {
        let now = self.node.store().now().await?;
        for node in self.peers.keys() {
            let outbox = NodeKeys.peer_outbox(*node);
            let read = Read::Members(RESENT, 0);
            let entries = self.node.store().elements(Database::Node, &outbox, read);
            let commit = entries
                .await?
                .iter()
                .fold(Commit::default(), |commit, entry| {
                    commit.mark(&outbox, now, entry)
                });
            let _ = self.node.store().commit(Database::Node, &commit).await?;
        }
        for known in self.peers.values_mut() {
            known.line.reset();
        }
        Ok(())
    }

    /// Returns the frames that may be sent now, at most one for each node. [`Self::sent`] follows for each that was sent.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn outbound(&mut self, mono_ms: u64) -> Result<Vec<Outbound>, ContextError> {
        self.read_peers(mono_ms).await?;
        let nodes: Vec<_> = self.peers.keys().copied().collect();
        let mut frames = Vec::new();
        for node in nodes {
            frames.extend(self.frame_to(node, mono_ms).await?);
        }
        Ok(frames)
    }

    async fn frame_to(
        &mut self,
        to: NodeId,
        mono_ms: u64,
    ) -> Result<Option<Outbound>, ContextError> {
        let Some(known) = self.peers.get_mut(&to) else {
            return Ok(None);
        };
        let (daemon, line) = (known.peer.card.daemon, &mut known.line);
        let Some(mut draft) = line.draft(mono_ms) else {
            return Ok(None);
        };
        if draft.reads_outbox {
            let more = self.fill(to, &mut draft).await?;
            if let (Some(known), false) = (self.peers.get_mut(&to), more) {
                known.line.looked(mono_ms);
            }
        }
        if !draft.is_frame() {
            self.settle(to, &draft.marks).await?;
            return Ok(None);
        }
        let asks = draft.asks();
        let frame = Frame {
            dst: to,
            src: self.me,
            sent_ms: self.node.store().now().await?,
            items: draft.items,
        };
        let bytes = match frame.seal(&self.key) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(node = %to, %error, "frame not sent");
                return Ok(None);
            }
        };
        Ok(Some(Outbound {
            to,
            daemon,
            bytes,
            marks: draft.marks,
            asks,
        }))
    }

    /// Adds due entries of an outbox to a frame. Returns true if more may be due.
    async fn fill(&self, to: NodeId, draft: &mut Draft<Vec<u8>>) -> Result<bool, ContextError> {
        let (store, outbox) = (self.node.store(), NodeKeys.peer_outbox(to));
        let due = store.elements(Database::Node, &outbox, Read::Due(PAGE));
        let due = due.await?;
        if due.is_empty() {
            return Ok(false);
        }
        let now = store.now().await?;
        for member in &due {
            let entry = std::str::from_utf8(member).ok();
            let Some(entry) = entry.and_then(|text| text.parse::<Entry>().ok()) else {
                draft.marks.push((member.clone(), None));
                continue;
            };
            let item = match entry {
                Entry::Message { of, .. } => self.next_item(to, of).await?,
                Entry::State { of, at } => Some(self.node.answer_of(to, of, at).await?),
            };
            if !draft.add(member.clone(), &entry, item, now) {
                return Ok(true);
            }
        }
        Ok(due.len() == PAGE)
    }

    /// Returns the next item for a message of this node; `None` if the message needs nothing any more.
    pub(super) async fn next_item(
        &self,
        to: NodeId,
        of: SentFrom,
    ) -> Result<Option<Item>, ContextError> {
        let context = match self.node.context(of.context).await {
            Err(error) if error.is_permanent() => return Ok(None),
            context => context?,
        };
        let view = match context.message_of(of.message).await {
            Err(error) if error.is_permanent() => None,
            view => view?,
        };
        let nonce = of.nonce.to_string();
        let same = view.filter(|view| view.nonce.as_deref() == Some(nonce.as_str()));
        let sent = same.as_ref().map(|view| Sent {
            status: view.message.status,
            is_stored: view.stored_at.is_some(),
        });
        let Some(view) = same.filter(|view| view.target(self.me).node == to) else {
            return Ok(None);
        };
        let at = view.target(self.me).context;
        Ok(match next_step(sent) {
            Step::Send => view
                .message
                .envelope
                .map(|it| Item::Message(it.into_bytes())),
            Step::Ask => Some(Item::Ask { of, at }),
            Step::Forget => None,
        })
    }

    /// Records that a frame was passed on: its entries are due again later, or done.
    ///
    /// # Errors
    /// A call to the server fails: the entries are sent again.
    pub async fn sent(&mut self, frame: Outbound, mono_ms: u64) -> Result<(), ContextError> {
        if let Some(known) = self.peers.get_mut(&frame.to) {
            known.line.sent(mono_ms, frame.asks);
        }
        self.settle(frame.to, &frame.marks).await
    }

    async fn settle(
        &self,
        to: NodeId,
        marks: &[(Vec<u8>, Option<u64>)],
    ) -> Result<(), ContextError> {
        if marks.is_empty() {
            return Ok(());
        }
        let outbox = NodeKeys.peer_outbox(to);
        let commit = marks
            .iter()
            .fold(Commit::default(), |commit, (entry, next)| match next {
                Some(next) => commit.mark(&outbox, *next, entry),
                None => commit.unmark(&outbox, entry),
            });
        let _ = self.node.store().commit(Database::Node, &commit).await?;
        Ok(())
    }
}
