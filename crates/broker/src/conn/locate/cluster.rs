//! Redis Cluster: all keys of a namespace with a hash tag are in one slot, so that one node at a time has the data.
//! Any node knows which one. Redirections during a move of the slot (`ASK`) are not followed: until its end the keys
//! are on two nodes, and no script could access all of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use meshwork_model::name::Namespace;
use redis::{ConnectionAddr, ErrorKind, RedisError, RedisResult, Value};

use super::super::ConnectError;
use super::super::dial::{Dial, beside};
use super::{ASK_TIMEOUT, ask};

/// Number of slots in a cluster.
const SLOTS: u16 = 16384;
/// Number of nodes that are remembered, as in the largest clusters.
const MAX_NODES: usize = 1000;

/// Returns the slot of all keys of a namespace.
pub(super) fn slot(namespace: &Namespace, place: &str) -> Result<u16, ConnectError> {
    let tag = namespace.hash_tag().ok_or_else(|| ConnectError::Untagged {
        place: place.to_owned(),
        namespace: namespace.to_string(),
        option: "--namespace",
    })?;
    Ok(crc16(tag.as_bytes()) % SLOTS)
}

/// Computes CRC-16/XMODEM, as the cluster's specification requires.
fn crc16(bytes: &[u8]) -> u16 {
    let bit = |crc: u16, _| {
        if crc & 0x8000 == 0 {
            crc << 1
        } else {
            (crc << 1) ^ 0x1021
        }
    };
    let byte = |crc: u16, byte: &u8| (0..8).fold(crc ^ (u16::from(*byte) << 8), bit);
    bytes.iter().fold(0, byte)
}

/// The known nodes of a cluster.
pub(super) struct Cluster {
    slot: u16,
    /// At least one node.
    nodes: Mutex<Vec<ConnectionAddr>>,
    /// Index of the node that is queried first. It changes each time, because a node that is cut off from the others
    /// has an old view.
    turn: AtomicUsize,
}

/// Owners of slots as one node sees them: first slot, last slot, master, replicas.
type View = Vec<Vec<Value>>;

impl Cluster {
    pub(super) fn new(slot: u16, nodes: Vec<ConnectionAddr>) -> Self {
        Self {
            slot,
            nodes: Mutex::new(nodes),
            turn: AtomicUsize::new(0),
        }
    }

    /// Returns the address of the slot, by the first node that answers.
    pub(super) async fn locate(&self, dial: &Dial) -> RedisResult<ConnectionAddr> {
        let nodes = self.known();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut failed = None;
        for turn in 0..nodes.len() {
            let node = &nodes[(first.wrapping_add(turn)) % nodes.len()];
            match self.ask_one(dial, node).await {
                Ok(addr) => return Ok(addr),
                Err(error) => {
                    tracing::debug!(%node, %error, "no answer");
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| self.unserved()))
    }

    async fn ask_one(&self, dial: &Dial, node: &ConnectionAddr) -> RedisResult<ConnectionAddr> {
        let mut connection = dial.connect(node, ASK_TIMEOUT).await?;
        let mut question = redis::cmd("CLUSTER");
        question.arg("SLOTS");
        let view: View = ask(&mut connection, &question).await?;
        let mut owner = None;
        let mut seen = Vec::new();
        for range in view {
            let mut range = range.into_iter();
            let (Some(from), Some(to)) = (range.next(), range.next()) else {
                continue;
            };
            let bounds: (u16, u16) = (redis::from_redis_value(from)?, redis::from_redis_value(to)?);
            let here: Vec<_> = range.filter_map(|one| address(node, one)).collect();
            if (bounds.0..=bounds.1).contains(&self.slot) {
                owner = here.first().cloned();
            }
            seen.extend(here);
        }
        self.learn(seen);
        owner.ok_or_else(|| self.unserved())
    }

    fn known(&self) -> Vec<ConnectionAddr> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.clone()
    }

    fn learn(&self, seen: Vec<ConnectionAddr>) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for node in seen {
            if nodes.len() < MAX_NODES && !nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }

    fn unserved(&self) -> RedisError {
        let what = "no node of the cluster serves the namespace's slot";
        (ErrorKind::Io, what, self.slot.to_string()).into()
    }
}

/// Returns the address of a node that another one names by host, port and id. A node that does not know its own host
/// sends none.
fn address(queried: &ConnectionAddr, node: Value) -> Option<ConnectionAddr> {
    let mut parts = redis::from_redis_value::<Vec<Value>>(node)
        .ok()?
        .into_iter();
    let host: Option<String> = redis::from_redis_value(parts.next()?).ok()?;
    let port: u16 = redis::from_redis_value(parts.next()?).ok()?;
    let host = match (host.as_deref(), queried) {
        (Some("" | "?") | None, ConnectionAddr::Tcp(host, _)) => host.clone(),
        (Some("" | "?") | None, ConnectionAddr::TcpTls { host, .. }) => host.clone(),
        (Some(host), _) => host.to_owned(),
        (None, _) => return None,
    };
    Some(beside(queried, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let slot = |name: &str| slot(&name.parse().unwrap(), "h:1");
        assert_eq!(slot("{hero}").unwrap(), 8184);
        assert_eq!(slot("a-{hero}").unwrap(), 8184);
        let said = slot("hero").unwrap_err().to_string();
        assert!(said.contains("--namespace '{hero}'"), "{said}");
    }

    #[test]
    fn a_node_without_a_host_is_the_one_that_was_asked() {
        let queried = ConnectionAddr::Tcp("h".to_owned(), 7000);
        let named = |host| Value::Array(vec![host, Value::Int(7001)]);
        let text = |text: &str| Value::BulkString(text.as_bytes().into());
        let of = |host| address(&queried, named(host)).unwrap().to_string();
        assert_eq!(of(text("10.0.0.1")), "10.0.0.1:7001");
        assert_eq!(of(text("")), "h:7001");
        assert_eq!(of(Value::Nil), "h:7001");
    }
}
