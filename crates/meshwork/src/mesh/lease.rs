//! Lease of the process that exchanges frames with other nodes: each frame of the daemon goes to one process, and only one
//! knows the pace of all links.

use std::time::Duration;

use meshwork_broker::context::{Commit, Committed, Database};

use crate::context::{ContextError, Node};

/// Duration of the lease. Another process takes over when it has expired.
const LEASE: Duration = Duration::from_secs(6);
const OWNER: &str = "owner";
const UNTIL: &str = "until_ms";
/// Reason why the owner exchanges no frames.
const FAULT: &str = "fault";
/// Greatest length of this reason, in bytes.
const MAX_FAULT: usize = 500;

/// State of the exchange with other nodes, whichever process has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MeshState {
    /// A process exchanges frames.
    Exchanges,
    /// No process does.
    Nobody,
    /// A process has the lease, and fails for this reason.
    Fails(String),
}

/// Returns the state of the exchange.
pub(super) async fn state(node: &Node) -> Result<MeshState, ContextError> {
    let (store, key) = (node.store(), &node.keys().mesh());
    let fields = store.hash(Database::Node, key).await?;
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.and_then(|(_, value)| String::from_utf8(value.clone()).ok())
    };
    let until = field(UNTIL).and_then(|until| until.parse::<u64>().ok());
    let now = store.now().await?;
    Ok(match field(FAULT).filter(|fault| !fault.is_empty()) {
        _ if until.is_none_or(|until| until <= now) => MeshState::Nobody,
        Some(fault) => MeshState::Fails(fault),
        None => MeshState::Exchanges,
    })
}

/// A process that takes part in the election.
#[derive(Debug)]
pub(super) struct Lease {
    owner: String,
    /// Its own entry, as stored last.
    held: Option<String>,
}

impl Lease {
    /// Time after which the lease is renewed: a third of it.
    pub(super) const RENEW: Duration = Duration::from_secs(2);

    pub(super) fn new() -> Self {
        let owner = uuid::Uuid::new_v4().to_string();
        Self { owner, held: None }
    }

    /// Takes or renews the lease. Returns false if another process holds it.
    pub(super) async fn hold(&mut self, node: &Node) -> Result<bool, ContextError> {
        let (store, key) = (node.store(), &node.keys().mesh());
        let now = store.now().await?;
        let (owner, until) = match &self.held {
            Some(until) => (self.owner.clone(), until.clone()),
            None => {
                let fields = store.hash(Database::Node, key).await?;
                let field = |name: &str| {
                    let found = fields.iter().find(|(field, _)| field == name);
                    found.and_then(|(_, value)| String::from_utf8(value.clone()).ok())
                };
                let (owner, until) = (field(OWNER), field(UNTIL).unwrap_or_default());
                let owner = owner.unwrap_or_default();
                if owner != self.owner && until.parse().is_ok_and(|until: u64| until > now) {
                    return Ok(false);
                }
                (owner, until)
            }
        };
        let next = now.saturating_add(u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX));
        let next = next.to_string();
        let commit = Commit::default()
            .is(key, OWNER, owner.as_bytes())
            .is(key, UNTIL, until.as_bytes())
            .set(key, [(OWNER, self.owner.as_str()), (UNTIL, &next)]);
        // That of the former owner.
        let commit = match self.held {
            Some(_) => commit,
            None => commit.set(key, [(FAULT, "")]),
        };
        let taken = store.commit(Database::Node, &commit).await? == Committed::Done;
        self.held = taken.then_some(next);
        Ok(taken)
    }

    /// Records why this process exchanges no frames; `None`: it does again. Does nothing without the lease.
    pub(super) async fn tell(&self, node: &Node, fault: Option<&str>) -> Result<(), ContextError> {
        let fault = fault.unwrap_or_default();
        let fault = &fault[..fault.floor_char_boundary(MAX_FAULT)];
        let key = &node.keys().mesh();
        let commit = Commit::default()
            .is(key, OWNER, self.owner.as_bytes())
            .set(key, [(FAULT, fault)]);
        let _ = node.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Ends the lease, so that another process takes over at once.
    pub(super) async fn release(&mut self, node: &Node) -> Result<(), ContextError> {
        let Some(until) = self.held.take() else {
            return Ok(());
        };
        let key = &node.keys().mesh();
        let commit = Commit::default()
            .is(key, OWNER, self.owner.as_bytes())
            .is(key, UNTIL, until.as_bytes())
            .delete(key);
        let _ = node.store().commit(Database::Node, &commit).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use meshwork_broker::conn::Conn;
    use meshwork_broker::{Broker, Clock};
    use meshwork_model::keys::hero::JobKeys;

    use super::*;

    #[tokio::test]
    async fn one_process_holds_the_lease_until_it_ends_or_expires() {
        let conn = Conn::embedded(&meshwork_embedded::Handle::in_memory());
        let (clock, hand) = Clock::manual(1_000_000);
        let node = Node::of(&Broker::new(conn, JobKeys::default()).with_clock(clock));
        let (mut one, mut other) = (Lease::new(), Lease::new());
        assert!(one.hold(&node).await.unwrap());
        assert!(!other.hold(&node).await.unwrap());
        let pass = |ms| hand.fetch_add(ms, std::sync::atomic::Ordering::SeqCst);
        pass(5_000);
        assert!(one.hold(&node).await.unwrap(), "renewed");
        pass(5_000);
        assert!(!other.hold(&node).await.unwrap());
        pass(2_000);
        assert!(other.hold(&node).await.unwrap(), "expired");
        assert!(!one.hold(&node).await.unwrap(), "lost, and noticed");
        other.release(&node).await.unwrap();
        assert!(one.hold(&node).await.unwrap());
    }
}
