//! Pings of a command: the request is in the record of the node, and the process that exchanges frames answers there.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::context::{Commit, Database};
use meshwork_model::context::field;
use meshwork_model::mesh::PeerName;
use meshwork_model::time::{duration_of, iso};
use tokio::time::{Instant, sleep};

use super::lease::{MeshState, state};
use crate::context::{ContextError, Node, Pong};

/// Interval of looks for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Reason why a node did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// The name is unknown, or a call to the server fails.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The node is revoked, or its card has expired.
    #[error("node {0:?} is not trusted: trust a new card of it with `meshwork mesh trust`")]
    NotTrusted(String),
    /// No process exchanges frames.
    #[error(
        "nobody exchanges messages with other nodes here: start `meshwork supervisor --mycelium URL` on this node"
    )]
    NoSupervisor,
    /// The process that exchanges frames does not reach its daemon.
    #[error("the supervisor of this node exchanges no messages: {0}")]
    Daemon(String),
    /// The node has not answered in time.
    #[error(
        "node {name:?} has not answered within {}; its last frame came {seen}: check its daemon, its supervisor, and that it \
         trusts the card of this node",
        duration_of(*waited)
    )]
    NoAnswer {
        /// Name of the node.
        name: String,
        /// Time of its last frame.
        seen: String,
        /// Duration of the wait.
        waited: Duration,
    },
}

impl Node {
    /// Pings a node through the process that exchanges frames, and waits for the answer.
    ///
    /// # Errors
    /// [`PingError`]: the node does not answer within `patience`, or the ping cannot be sent.
    #[boxed]
    pub async fn ping(&self, name: &PeerName, patience: Duration) -> Result<Pong, PingError> {
        let peer = self.peer_named(name).await?;
        let asked_ms = self.store().now().await.map_err(ContextError::from)?;
        if !peer.is_trusted(asked_ms / 1000) {
            return Err(PingError::NotTrusted(name.to_string()));
        }
        exchanges(self).await?;
        let (record, at) = (self.keys().peer(peer.card.node), asked_ms.to_string());
        let commit = Commit::default()
            .is(&record, field::NAME, name.as_str().as_bytes())
            .set(&record, [(field::ASKED_MS, at.as_str())]);
        let done = self.store().commit(Database::Node, &commit).await;
        let _ = done.map_err(ContextError::from)?;
        let until = Instant::now() + patience;
        loop {
            let peer = self.peer_named(name).await?;
            if let Some(pong) = peer.pong.filter(|pong| pong.at_ms >= asked_ms) {
                return Ok(pong);
            }
            if Instant::now() >= until {
                exchanges(self).await?;
                return Err(PingError::NoAnswer {
                    name: name.to_string(),
                    seen: peer.seen_ms.map_or_else(|| "never".to_owned(), iso),
                    waited: patience,
                });
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Checks that a process exchanges frames.
async fn exchanges(node: &Node) -> Result<(), PingError> {
    match state(node).await? {
        MeshState::Exchanges => Ok(()),
        MeshState::Nobody => Err(PingError::NoSupervisor),
        MeshState::Fails(why) => Err(PingError::Daemon(why)),
    }
}
