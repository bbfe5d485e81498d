//! Redis Cluster: all keys of a namespace, or of a context, share a hash tag and so a slot, which one node at a time
//! has. Any node knows which one. All slots of a process share one connection per node. Redirections during a move of a
//! slot (`ASK`) are not followed: until its end the keys are on two nodes, and no script could access all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_model::name::Namespace;
use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ErrorKind, RedisError, RedisResult, Value};
use tokio::time::Instant;

use super::super::connect_error::CHECK;
use super::super::dial::{Dial, beside};
use super::super::{ConnectError, gone, of_node, requirements};
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

/// Returns the slot of a key: that of the text in its first braces, or of all of it.
pub(in crate::conn) fn slot_of_key(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let tag = tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty());
    crc16(tag.unwrap_or(key).as_bytes()) % SLOTS
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

/// A slot, and the nodes of its cluster.
pub(super) struct Cluster {
    slot: u16,
    nodes: Arc<Nodes>,
}

/// The nodes of a cluster, for all slots.
struct Nodes {
    /// At least one node.
    known: Mutex<Vec<ConnectionAddr>>,
    /// Index of the node that is queried first. It changes each time, because a node that is cut off from the others
    /// has an old view.
    turn: AtomicUsize,
    /// The latest view.
    view: Latest<Arc<View>>,
    /// The shared connection to each node.
    open: Mutex<HashMap<String, Arc<Latest<Shared>>>>,
    /// True if a node that may lose jobs is refused at its first connection.
    are_checked: AtomicBool,
}

/// A value that one caller at a time obtains. Those who wait meanwhile share the outcome, so that a node that hangs is
/// not tried by each of them in turn.
struct Latest<T>(tokio::sync::Mutex<Outcome<T>>);

struct Outcome<T> {
    value: Option<T>,
    /// End of the latest failed attempt.
    failed: Option<Instant>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        let (value, failed) = (None, None);
        Self(tokio::sync::Mutex::new(Outcome { value, failed }))
    }
}

impl<T: Clone> Latest<T> {
    /// Returns the value if it fits, else makes one.
    async fn get(
        &self,
        fits: impl FnOnce(&T) -> bool,
        make: impl AsyncFnOnce() -> RedisResult<T>,
    ) -> RedisResult<T> {
        let arrived = Instant::now();
        let mut outcome = self.0.lock().await;
        if let Some(value) = outcome.value.as_ref().filter(|value| fits(value)) {
            return Ok(value.clone());
        }
        if outcome.failed.is_some_and(|failed| failed >= arrived) {
            return Err(gone("an attempt at the same time has failed"));
        }
        let made = make().await;
        match &made {
            Ok(value) => outcome.value = Some(value.clone()),
            Err(_) => outcome.failed = Some(Instant::now()),
        }
        made
    }
}

/// Owners of all slots, as one node sees them.
struct View {
    /// Time before the query.
    begun: Instant,
    /// First and last slot with the master.
    owners: Vec<(u16, u16, ConnectionAddr)>,
}

/// Owners of all slots of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotMap {
    /// First and last slot with the address of the master.
    owners: Vec<(u16, u16, String)>,
}

impl SlotMap {
    /// Returns the address of the node that has the slot of a key.
    #[must_use]
    pub fn node_of(&self, key: &str) -> Option<&str> {
        let slot = slot_of_key(key);
        let mut owners = self.owners.iter();
        let found = owners.find(|(from, to, _)| (*from..=*to).contains(&slot));
        found.map(|(_, _, owner)| owner.as_str())
    }

    /// Returns a key for each node with slots, in the order of the nodes.
    pub(crate) fn keys(&self) -> Vec<(&str, String)> {
        let mut left: BTreeSet<_> = self.nodes().collect();
        let mut keys = Vec::new();
        // Each slot has many of these keys.
        for number in 0..u64::from(SLOTS) * 100 {
            if left.is_empty() {
                break;
            }
            let key = format!("{{{number}}}");
            if let Some(node) = self.node_of(&key)
                && left.remove(node)
            {
                keys.push((node, key));
            }
        }
        keys.sort();
        keys
    }

    /// Returns the addresses of all nodes with slots, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let owners = self.owners.iter().map(|(_, _, owner)| owner.as_str());
        owners.collect::<BTreeSet<_>>().into_iter()
    }
}

/// A connection that all slots of a node share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) connection: MultiplexedConnection,
    /// Time at which it was open.
    pub(super) opened: Instant,
}

/// Ranges of slots as a node lists them: first slot, last slot, master, replicas.
type Ranges = Vec<Vec<Value>>;

impl Cluster {
    pub(super) fn new(slot: u16, nodes: Vec<ConnectionAddr>) -> Self {
        let nodes = Nodes {
            known: Mutex::new(nodes),
            turn: AtomicUsize::new(0),
            view: Latest::default(),
            open: Mutex::default(),
            are_checked: AtomicBool::new(false),
        };
        let nodes = Arc::new(nodes);
        Self { slot, nodes }
    }

    /// Returns another slot of the same cluster.
    pub(super) fn of_slot(&self, slot: u16) -> Self {
        let nodes = Arc::clone(&self.nodes);
        Self { slot, nodes }
    }

    /// Returns the same slot, over connections of its own.
    pub(super) fn again(&self) -> Self {
        let again = Self::new(self.slot, self.nodes.known());
        if self.nodes.are_checked.load(Ordering::Relaxed) {
            again.check_nodes();
        }
        again
    }

    /// Makes the first connection to each further node check that the node is suitable for jobs.
    pub(super) fn check_nodes(&self) {
        self.nodes.are_checked.store(true, Ordering::Relaxed);
    }

    pub(super) fn slot(&self) -> u16 {
        self.slot
    }

    /// Returns any node.
    pub(super) fn any(&self) -> ConnectionAddr {
        self.nodes.known().swap_remove(0)
    }

    /// Returns the address of the slot, by a view that is not older than `since`, or by any view.
    pub(super) async fn locate(
        &self,
        dial: &Dial,
        since: Option<Instant>,
    ) -> RedisResult<ConnectionAddr> {
        let view = self.view(dial, since).await?;
        view.owner(self.slot).ok_or_else(|| unserved(self.slot))
    }

    async fn view(&self, dial: &Dial, since: Option<Instant>) -> RedisResult<Arc<View>> {
        let fits = |view: &Arc<View>| since.is_none_or(|since| view.begun >= since);
        let ask = async || self.nodes.view(dial, self.slot).await.map(Arc::new);
        self.nodes.view.get(fits, ask).await
    }

    /// Returns the owners of all slots now.
    pub(super) async fn map(&self, dial: &Dial) -> RedisResult<SlotMap> {
        let view = self.view(dial, Some(Instant::now())).await?;
        let owners = view.owners.iter();
        let owners = owners.map(|(from, to, owner)| (*from, *to, owner.to_string()));
        Ok(SlotMap {
            owners: owners.collect(),
        })
    }

    /// Returns the shared connection to a node, which was opened after `lost`; opens it if there is none.
    pub(super) async fn shared(
        &self,
        dial: &Dial,
        addr: &ConnectionAddr,
        lost: Option<Instant>,
    ) -> RedisResult<Shared> {
        let open = Arc::clone(self.nodes.open().entry(addr.to_string()).or_default());
        let fits = |open: &Shared| lost.is_none_or(|lost| open.opened > lost);
        let connect = async || {
            let mut connection = dial.connect(addr, ASK_TIMEOUT).await?;
            let opened = Instant::now();
            if lost.is_none() && self.nodes.are_checked.load(Ordering::Relaxed) {
                requirements::check_node(&mut connection, addr).await?;
            }
            Ok(Shared { connection, opened })
        };
        let shared = open.get(fits, connect).await;
        shared.map_err(|error| of_node(addr, error))
    }
}

impl View {
    fn owner(&self, slot: u16) -> Option<ConnectionAddr> {
        let mut owners = self.owners.iter();
        let found = owners.find(|(from, to, _)| (*from..=*to).contains(&slot));
        found.map(|(_, _, owner)| owner.clone())
    }
}

impl Nodes {
    fn known(&self) -> Vec<ConnectionAddr> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Latest<Shared>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the view of the first node that answers and knows an owner of the slot.
    async fn view(&self, dial: &Dial, slot: u16) -> RedisResult<View> {
        let nodes = self.known();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut failed = None;
        for turn in 0..nodes.len() {
            let node = &nodes[(first.wrapping_add(turn)) % nodes.len()];
            match self.ask_one(dial, node).await {
                Ok(view) if view.owner(slot).is_some() => return Ok(view),
                Ok(_) => failed = Some(unserved(slot)),
                Err(error) => {
                    tracing::debug!(%node, %error, "no answer");
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| unserved(slot)))
    }

    async fn ask_one(&self, dial: &Dial, node: &ConnectionAddr) -> RedisResult<View> {
        let begun = Instant::now();
        let mut connection = dial.connect(node, ASK_TIMEOUT).await?;
        let mut question = redis::cmd("CLUSTER");
        question.arg("SLOTS");
        let ranges: Ranges = ask(&mut connection, &question).await?;
        let (mut owners, mut seen) = (Vec::new(), Vec::new());
        for range in ranges {
            let mut range = range.into_iter();
            let (Some(from), Some(to)) = (range.next(), range.next()) else {
                continue;
            };
            let (from, to) = (redis::from_redis_value(from)?, redis::from_redis_value(to)?);
            let here: Vec<_> = range.filter_map(|one| address(node, one)).collect();
            owners.extend(here.first().map(|owner| (from, to, owner.clone())));
            seen.extend(here);
        }
        self.learn(seen);
        Ok(View { begun, owners })
    }

    fn learn(&self, seen: Vec<ConnectionAddr>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for node in seen {
            if known.len() < MAX_NODES && !known.contains(&node) {
                known.push(node);
            }
        }
    }
}

fn unserved(slot: u16) -> RedisError {
    let what = format!("no node serves slot {slot}; {CHECK} names the reason");
    (ErrorKind::Io, "CLUSTERDOWN", what).into()
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
        for (key, like) in [
            ("{ctx:7}:job:1:2", "ctx:7"),
            ("a{}b", "a{}b"),
            ("a{b", "a{b"),
        ] {
            assert_eq!(slot_of_key(key), crc16(like.as_bytes()) % SLOTS);
        }
        let said = slot("hero").unwrap_err().to_string();
        assert!(said.contains("--namespace '{hero}'"), "{said}");
    }

    #[test]
    fn a_node_without_a_host_is_the_one_that_was_queried() {
        let queried = ConnectionAddr::Tcp("h".to_owned(), 7000);
        let named = |host| Value::Array(vec![host, Value::Int(7001)]);
        let text = |text: &str| Value::BulkString(text.as_bytes().into());
        let of = |host| address(&queried, named(host)).unwrap().to_string();
        assert_eq!(of(text("10.0.0.1")), "10.0.0.1:7001");
        assert_eq!(of(text("")), "h:7001");
        assert_eq!(of(Value::Nil), "h:7001");
    }
}
