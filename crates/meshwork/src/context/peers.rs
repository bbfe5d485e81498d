//! Other nodes that this node trusts, by a name of its own. Trust is explicit: somebody stores the card of a node.

use meshwork_broker::context::{Commit, Committed, Database, RecordFields};
use meshwork_macros::boxed;
use meshwork_model::context::{NodeId, field};
use meshwork_model::mesh::{Card, CardFault, PeerName};

use super::actors::OWNER;
use super::audit::Change;
use super::{ContextError, Node, TRIES};

/// Greatest number of nodes that a node knows. Each has an outbox, which is read in turn.
const MAX_PEERS: usize = 1_000;

/// Another node.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its name here.
    pub name: PeerName,
    /// Its card.
    pub card: Card,
    /// Time of the revocation, in seconds since 1970. Nothing is sent to the node or accepted from it any more.
    pub revoked_at: Option<u64>,
    /// Time of its last frame, in milliseconds since 1970.
    pub seen_ms: Option<u64>,
    /// Its clock minus the one of this node, at the last frame, in milliseconds.
    pub offset_ms: Option<i64>,
    /// Its last answer to a ping.
    pub pong: Option<Pong>,
    /// Time of the last request for a ping, in milliseconds since 1970.
    pub(crate) asked_ms: Option<u64>,
}

/// Answer of a node to a ping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pong {
    /// Time of the answer, in milliseconds since 1970.
    pub at_ms: u64,
    /// Time between the ping and the answer, in milliseconds.
    pub round_trip_ms: u64,
    /// Clock of the node minus the one of this node, in milliseconds; half of the round trip is taken into account.
    pub offset_ms: i64,
    /// Version of its program.
    pub version: String,
}

impl Peer {
    /// Returns true if the node is trusted at `now` (seconds since 1970).
    #[must_use]
    pub const fn is_trusted(&self, now: u64) -> bool {
        self.revoked_at.is_none() && now <= self.card.expires_at
    }

    fn read(fields: &RecordFields) -> Option<Self> {
        let text = |name: &str| {
            let found = fields.iter().find(|(field, _)| field == name)?;
            String::from_utf8(found.1.clone()).ok()
        };
        let number = |name| text(name).and_then(|text| text.parse().ok());
        let signed = |name| text(name).and_then(|text| text.parse().ok());
        Some(Self {
            name: text(field::NAME)?.parse().ok()?,
            card: Card::stored(text(field::CARD)?.as_bytes()).ok()?,
            revoked_at: number(field::REVOKED_AT),
            seen_ms: number(field::SEEN_MS),
            offset_ms: signed(field::OFFSET_MS),
            asked_ms: number(field::ASKED_MS),
            pong: number(field::PONG_MS).and_then(|at_ms| {
                Some(Pong {
                    at_ms,
                    round_trip_ms: number(field::ROUND_TRIP_MS)?,
                    offset_ms: signed(field::PONG_OFFSET_MS)?,
                    version: text(field::VERSION)?,
                })
            }),
        })
    }
}

impl Node {
    /// Returns a node that this node knows, trusted or revoked.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn peer(&self, node: NodeId) -> Result<Option<Peer>, ContextError> {
        let fields = self
            .store
            .hash(Database::Node, &self.keys().peer(node))
            .await?;
        Ok(Peer::read(&fields))
    }

    /// Returns the node of this name.
    ///
    /// # Errors
    /// [`ContextError::NoPeer`], or a call to the server fails.
    #[boxed]
    pub async fn peer_named(&self, name: &PeerName) -> Result<Peer, ContextError> {
        let names = self
            .store
            .hash(Database::Node, &self.keys().peers())
            .await?;
        let found = names.into_iter().find(|(known, _)| known == name.as_str());
        let node = found.and_then(|(_, node)| String::from_utf8(node).ok()?.parse().ok());
        let peer = match node {
            Some(node) => self.peer(node).await?,
            None => None,
        };
        peer.ok_or_else(|| ContextError::NoPeer(name.to_string()))
    }

    /// Returns all nodes that this node knows, by name.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn peers(&self) -> Result<Vec<Peer>, ContextError> {
        let names = self
            .store
            .hash(Database::Node, &self.keys().peers())
            .await?;
        let nodes = names.into_iter().filter_map(|(_, node)| {
            let node: NodeId = String::from_utf8(node).ok()?.parse().ok()?;
            Some(self.keys().peer(node))
        });
        let records: Vec<_> = nodes.take(MAX_PEERS).collect();
        let mut peers = Vec::new();
        let found = self.store.hashes(Database::Node, &records).await;
        match found.map_err(ContextError::from) {
            Ok(found) => peers.extend(found.iter().filter_map(Peer::read)),
            // One of the records is damaged.
            Err(error) if error.is_permanent() => {
                for record in &records {
                    let found = self.store.hash(Database::Node, record).await;
                    match found.map_err(ContextError::from) {
                        Ok(found) => peers.extend(Peer::read(&found)),
                        Err(error) if error.is_permanent() => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        peers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(peers)
    }

    /// Trusts the node of a card under a name. Another key of a known node has to be signed by the known one.
    ///
    /// # Errors
    /// [`ContextError::Card`], [`ContextError::OwnCard`], [`ContextError::PeerNameTaken`],
    /// [`ContextError::TooManyPeers`], or a call to the server fails.
    #[boxed]
    pub async fn trust_node(&self, card: &[u8], name: &PeerName) -> Result<Peer, ContextError> {
        for _ in 0..TRIES {
            let node = Card::stored(card)?.node;
            if node == self.identity().await? {
                return Err(ContextError::OwnCard);
            }
            let known = self.peer(node).await?;
            // Who revoked the node may trust any new key of it.
            let valid = known.as_ref().filter(|known| known.revoked_at.is_none());
            let now = u64::from(self.now().await?);
            let opened = Card::open(card, now, |_| valid.map(|known| known.card.clone()))?;
            if let Some(peer) = self.store_peer(card, name, known.as_ref()).await? {
                return Ok(Peer {
                    card: opened,
                    ..peer
                });
            }
        }
        Err(ContextError::Busy(self.keys().peers()))
    }

    /// Stores a card that was checked. Returns `None` if the records have changed meanwhile.
    async fn store_peer(
        &self,
        card: &[u8],
        name: &PeerName,
        known: Option<&Peer>,
    ) -> Result<Option<Peer>, ContextError> {
        let opened = Card::stored(card)?;
        let (text, node) = (String::from_utf8_lossy(card), opened.node.to_string());
        let names = self
            .store
            .hash(Database::Node, &self.keys().peers())
            .await?;
        let owner = names.iter().find(|(taken, _)| taken == name.as_str());
        // An empty entry is a former name.
        let owner = owner.filter(|(_, owner)| !owner.is_empty());
        if owner.is_some_and(|(_, owner)| owner != node.as_bytes()) {
            return Err(ContextError::PeerNameTaken(name.to_string()));
        }
        if owner.is_none() && names.len() >= MAX_PEERS {
            return Err(ContextError::TooManyPeers(MAX_PEERS));
        }
        let (record, before) = (self.keys().peer(opened.node), known.map(|it| &it.name));
        let written = self.store.hash(Database::Node, &record).await?;
        let written = written.into_iter().find(|(field, _)| field == field::CARD);
        let written = written.map(|(_, card)| card).unwrap_or_default();
        let change = Change {
            who: OWNER,
            what: "trust node",
            object: &record,
            before: &known.map_or(String::new(), |it| it.card.key.to_string()),
            after: &opened.key.to_string(),
        };
        let commit = Commit::default()
            .is(&record, field::CARD, &written)
            .delete(&record)
            .set(
                &record,
                [(field::NAME, name.as_str()), (field::CARD, &text)],
            )
            .set(&self.keys().peers(), [(name.as_str(), node.as_str())]);
        // One node has one name: a former one names no node any more.
        let commit = match before.filter(|before| *before != name) {
            Some(before) => commit.set(&self.keys().peers(), [(before.as_str(), "")]),
            None => commit,
        };
        let commit = change.noted(commit, &self.keys().audit());
        let done = self.store.commit(Database::Node, &commit).await?;
        Ok(matches!(done, Committed::Done).then(|| Peer {
            name: name.clone(),
            card: opened,
            revoked_at: None,
            seen_ms: None,
            offset_ms: None,
            pong: None,
            asked_ms: None,
        }))
    }

    /// Revokes the trust in a node, at once. Messages that wait for it end at their timeouts.
    ///
    /// # Errors
    /// [`ContextError::NoPeer`], or a call to the server fails.
    #[boxed]
    pub async fn revoke_node(&self, name: &PeerName) -> Result<Peer, ContextError> {
        let peer = self.peer_named(name).await?;
        let (record, now) = (self.keys().peer(peer.card.node), self.now().await?);
        let change = Change {
            who: OWNER,
            what: "revoke node",
            object: &record,
            before: name.as_str(),
            ..Change::default()
        };
        let at = now.to_string();
        let commit = Commit::default().set(&record, [(field::REVOKED_AT, at.as_str())]);
        let commit = change.noted(commit, &self.keys().audit());
        let _ = self.store.commit(Database::Node, &commit).await?;
        Ok(Peer {
            revoked_at: Some(now.into()),
            ..peer
        })
    }

    /// Returns a node if it is trusted now.
    pub(crate) async fn trusted_peer(&self, node: NodeId) -> Result<Option<Peer>, ContextError> {
        let now = u64::from(self.now().await?);
        let peer = self.peer(node).await?;
        Ok(peer.filter(|peer| peer.is_trusted(now)))
    }
}

impl From<CardFault> for ContextError {
    fn from(fault: CardFault) -> Self {
        Self::Card(fault)
    }
}
