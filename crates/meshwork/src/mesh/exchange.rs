//! The exchange of frames with other nodes: outboxes become frames, and frames become messages, notices and answers. All
//! decisions are in `meshwork_model::mesh`; all state that matters is in the store.

use meshwork_macros::boxed;
use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, VecDeque};

use meshwork_broker::context::{Commit, Database, Read};
use meshwork_model::actor_key::{KeyBytes, SecretKey};
use meshwork_model::context::NodeId;
use meshwork_model::mesh::{
    Draft, Entry, Frame, Held, Item, Line, PeerState, Rate, Refusals, Sent, SentFrom, Step,
    next_step,
};

use super::damage::Damages;
use super::refusals::Noted;
use super::sweep::Swept;
use crate::context::{ContextError, Node, Peer};

/// Number of entries of an outbox that are read at once. More fit into a frame only if they are small.
const PAGE: usize = 100;
/// Number of entries that are due at once after a restart of the daemon.
const RESENT: usize = 1_000;
/// Time until the cards of other nodes are read again, in milliseconds: a revocation works after this time.
const READ_PEERS_MS: u64 = 2_000;
/// Time for which a request for a ping is repeated, in milliseconds: longer than the default wait of the command.
const ASKED_FOR_MS: u64 = 30_000;

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

/// A frame that was accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    pub(super) from: NodeId,
    pub(super) sent_ms: u64,
    /// Time of the server, in milliseconds since 1970.
    pub(super) now: u64,
    pub(super) mono_ms: u64,
}

/// Another node, and the exchange with it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) peer: Peer,
    pub(super) line: Line,
    /// Messages of the node that were refused lately.
    pub(super) refusals: Refusals,
    /// Messages of the node that are not processed; `None` before they are counted.
    pub(super) held: Option<Held>,
    /// Time of the last count.
    pub(super) counted: u64,
    /// Time at which its last frame was recorded.
    pub(super) noted: Option<u64>,
    /// Rate of its frames.
    pub(super) rate: Rate,
    /// Items of its frames that are not handled yet. Those that are lost with the process are sent again.
    pub(super) waiting: VecDeque<(Came, Item)>,
}

impl Known {
    fn new(peer: Peer) -> Self {
        Self {
            peer,
            line: Line::default(),
            refusals: Refusals::default(),
            held: None,
            counted: 0,
            noted: None,
            rate: Rate::default(),
            waiting: VecDeque::new(),
        }
    }

    /// Adds an answer for the next frame. A message is refused at most once a minute.
    pub(super) fn reply(&mut self, item: Item, mono_ms: u64) {
        if let Some(of) = refused_by(&item)
            && !self.refusals.note(*of, mono_ms)
        {
            return;
        }
        self.line.reply(item);
    }
}

/// Returns the message that an item refuses.
const fn refused_by(item: &Item) -> Option<&SentFrom> {
    match item {
        Item::State {
            of,
            state: PeerState::Refused,
            ..
        } => Some(of),
        _ => None,
    }
}

/// Returns true for a request for a ping that has no answer yet, and whose asker may still wait.
fn asks_for_ping(peer: &Peer, now_ms: u64) -> bool {
    let answered = peer.pong.as_ref().map_or(0, |pong| pong.at_ms);
    let at = peer.asked_ms.filter(|at| *at > answered);
    at.is_some_and(|at| now_ms.saturating_sub(at) < ASKED_FOR_MS)
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
    /// Those that are not in the store yet, by node and code.
    pub(super) uncounted: BTreeMap<(Option<NodeId>, String), u64>,
    /// Time of the next record of them.
    pub(super) counts_at: u64,
    pub(super) noted: Noted,
    pub(super) swept: Swept,
    pub(super) damages: Damages,
}

impl Exchange {
    /// Creates the exchange of a node, whose frames are signed with `key`.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn new(node: &Node, key: SecretKey) -> Result<Self, ContextError> {
        Ok(Self {
            me: node.identity().await?,
            node: node.clone(),
            key,
            peers: BTreeMap::new(),
            read_peers_at: 0,
            refused: BTreeMap::new(),
            uncounted: BTreeMap::new(),
            counts_at: 0,
            noted: Noted::default(),
            swept: Swept::default(),
            damages: Damages::default(),
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
        let now_ms = self.node.store().now().await?;
        let mut read = self.node.peers().await?;
        read.retain(|peer| peer.is_trusted(now_ms / 1000));
        self.peers
            .retain(|node, _| read.iter().any(|peer| peer.card.node == *node));
        for peer in read {
            let (node, asks) = (peer.card.node, asks_for_ping(&peer, now_ms));
            let known = match self.peers.entry(node) {
                MapEntry::Occupied(known) => {
                    let known = known.into_mut();
                    known.peer = peer;
                    known
                }
                MapEntry::Vacant(place) => place.insert(Known::new(peer)),
            };
            known.line.ask_ping(asks);
        }
        self.read_peers_at = mono_ms.saturating_add(READ_PEERS_MS);
        let noted = self.note_refusals(mono_ms).await;
        self.unless_damaged(noted, mono_ms)?;
        self.sweep(mono_ms).await
    }

    /// Makes the entries of all outboxes due: the daemon has lost what it had not sent.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn resend(&mut self, mono_ms: u64) -> Result<(), ContextError> {
        let nodes: Vec<_> = self.peers.keys().copied().collect();
        for node in nodes {
            let due = self.make_due(node).await;
            self.unless_damaged(due, mono_ms)?;
        }
        for known in self.peers.values_mut() {
            known.line.reset();
        }
        Ok(())
    }

    async fn make_due(&self, node: NodeId) -> Result<(), ContextError> {
        let (store, outbox) = (self.node.store(), self.node.keys().peer_outbox(node));
        let now = store.now().await?;
        let read = Read::Members(RESENT, 0);
        let entries = store.elements(Database::Node, &outbox, read).await?;
        let commit = entries.iter().fold(Commit::default(), |commit, entry| {
            commit.mark(&outbox, now, entry)
        });
        let _ = store.commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Returns the frames that may be sent now, at most one for each node. [`Self::sent`] follows for each that was sent.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn outbound(&mut self, mono_ms: u64) -> Result<Vec<Outbound>, ContextError> {
        self.read_peers(mono_ms).await?;
        self.handle_waiting().await?;
        self.tend(mono_ms).await?;
        let nodes: Vec<_> = self.peers.keys().copied().collect();
        let mut frames = Vec::new();
        for node in nodes {
            let frame = self.frame_to(node, mono_ms).await;
            match self.unless_damaged(frame, mono_ms)? {
                Some(frame) => frames.extend(frame),
                None => {
                    if let Some(known) = self.peers.get_mut(&node) {
                        known.line.looked(mono_ms);
                    }
                }
            }
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
        let Some(mut draft) = line.draft(mono_ms, rand::random::<u64>) else {
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
        if let Some(known) = self.peers.get_mut(&to) {
            for of in draft.items.iter().filter_map(refused_by) {
                known.refusals.note(*of, mono_ms);
            }
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
        let (store, outbox) = (self.node.store(), self.node.keys().peer_outbox(to));
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
            is_cancelled: view.cancel_at.is_some(),
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
            Step::Cancel => Some(Item::Cancel { of, at }),
            Step::Forget => None,
        })
    }

    /// Records that a frame was passed on: its entries are due again later, or done.
    ///
    /// # Errors
    /// A call to the server fails: the entries are sent again.
    #[boxed]
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
        let outbox = self.node.keys().peer_outbox(to);
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
