//! A real cluster on loopback: three masters, each with a third of the slots, and replicas of them on
//! request; or another number of masters.

use std::path::Path;
use std::time::Duration;

use redis::RedisResult;

use super::options::{BUS, ServerOptions};
use super::server::RealServer;
use super::tools::{need, need_for};
use crate::eventually;

/// Number of masters that a cluster needs to elect one.
const MASTERS: usize = 3;
/// Number of slots in a cluster.
const SLOTS: usize = 16384;
/// Time for the nodes to agree.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of keys that move at once: few, since others may call between two moves.
const KEYS_AT_ONCE: &str = "20";
/// Timeout of a move, in milliseconds.
const MIGRATE_MS: &str = "5000";

/// A cluster of one test, killed when dropped.
pub struct RealCluster {
    nodes: Vec<RealServer>,
    /// Number of masters, which are the first nodes.
    masters: usize,
}

impl RealCluster {
    /// Starts three masters and as many replicas, of the first master first. `None`: this machine lacks the server,
    /// and the calling test has been reported as skipped.
    ///
    /// # Panics
    /// The nodes do not agree; in CI, there is no server.
    pub async fn start(options: ServerOptions, replicas: usize) -> Option<Self> {
        let program = need(options.tool)?;
        Some(Self::with(&program, options, MASTERS, replicas).await)
    }

    /// Does the same as [`Self::start`] for custom harnesses, whose threads do not have a test's name.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_for(test: &str, options: ServerOptions, replicas: usize) -> Option<Self> {
        let program = need_for(test, options.tool)?;
        Some(Self::with(&program, options, MASTERS, replicas).await)
    }

    /// Starts this number of masters and no replica. A single one has all slots; it refuses keys of two slots, as each
    /// node does.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_masters_for(
        test: &str,
        options: ServerOptions,
        masters: usize,
    ) -> Option<Self> {
        let program = need_for(test, options.tool)?;
        Some(Self::with(&program, options, masters, 0).await)
    }

    async fn with(program: &Path, options: ServerOptions, masters: usize, replicas: usize) -> Self {
        let node = |_| RealServer::start(program, options.clone().cluster());
        let cluster = Self {
            nodes: (0..masters + replicas).map(node).collect(),
            masters,
        };
        cluster.meet().await.expect("the nodes take their commands");
        cluster
    }

    async fn meet(&self) -> RedisResult<()> {
        let masters = self.masters;
        for (at, node) in self.nodes[..masters].iter().enumerate() {
            let (from, to) = (at * SLOTS / masters, (at + 1) * SLOTS / masters - 1);
            let (from, to) = (from.to_string(), to.to_string());
            node.say::<()>(&["CLUSTER", "ADDSLOTSRANGE", &from, &to])?;
            // Epochs of nodes must be distinct.
            node.say::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()])?;
        }
        for node in &self.nodes[1..] {
            let (port, bus) = (node.port(), node.port() + BUS);
            let (port, bus) = (port.to_string(), bus.to_string());
            self.nodes[0].say::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        let all = self.nodes.len().to_string();
        self.each_says("cluster_known_nodes", &all).await;
        for (at, node) in self.nodes[masters..].iter().enumerate() {
            let master = self.id(at % masters)?;
            node.say::<()>(&["CLUSTER", "REPLICATE", &master])?;
        }
        self.each_says("cluster_state", "ok").await;
        for node in &self.nodes[masters..] {
            eventually("the replica follows", PATIENCE, async || {
                (node.info("master_link_status")? == "up").then_some(())
            })
            .await;
        }
        // All nodes know the replicas: a failover is possible.
        self.each_says("cluster_slots_ok", &SLOTS.to_string()).await;
        Ok(())
    }

    /// Waits until every live node has this line in `CLUSTER INFO`.
    async fn each_says(&self, name: &str, value: &str) {
        let line = format!("{name}:{value}");
        for node in &self.nodes {
            eventually(
                &format!("{} says {line}", node.port()),
                PATIENCE,
                async || {
                    let info: String = node.say(&["CLUSTER", "INFO"]).ok()?;
                    info.lines().any(|one| one == line).then_some(())
                },
            )
            .await;
        }
    }

    /// Returns the nodes, masters first.
    #[must_use]
    pub fn nodes(&self) -> &[RealServer] {
        &self.nodes
    }

    /// Returns a node, to kill or start it.
    #[must_use]
    pub fn node_mut(&mut self, at: usize) -> &mut RealServer {
        &mut self.nodes[at]
    }

    /// Returns the URL of all nodes, `redis+cluster://…`.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter().map(RealServer::host);
        let hosts = Vec::from_iter(hosts).join(",");
        format!("redis+cluster://{hosts}")
    }

    /// Returns the id of a node.
    fn id(&self, at: usize) -> RedisResult<String> {
        self.nodes[at].say(&["CLUSTER", "MYID"])
    }

    /// Returns the number of the master that owns the slot of `key`, and the slot.
    ///
    /// # Panics
    /// The first node does not answer.
    #[must_use]
    pub fn owner(&self, key: &str) -> (usize, usize) {
        let slot: usize = self.nodes[0]
            .say(&["CLUSTER", "KEYSLOT", key])
            .expect("the node answers");
        let masters = self.masters;
        let owns = |at: &usize| (at * SLOTS / masters..(at + 1) * SLOTS / masters).contains(&slot);
        let owner = (0..masters).find(owns).expect("each slot has an owner");
        (owner, slot)
    }

    /// Waits until every node finds all slots served.
    pub async fn settle(&self) {
        self.each_says("cluster_state", "ok").await;
    }

    /// Begins to move a slot from one master to another; its keys do not move yet.
    ///
    /// # Errors
    /// A node refuses the command.
    pub fn begin_move(&self, slot: usize, from: usize, to: usize) -> RedisResult<()> {
        let slot = &slot.to_string();
        let ids = (self.id(from)?, self.id(to)?);
        self.nodes[to].say::<()>(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &ids.0])?;
        self.nodes[from].say::<()>(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &ids.1])
    }

    /// Moves one key of a moving slot.
    ///
    /// # Errors
    /// A node refuses the command.
    pub fn move_key(&self, from: usize, to: usize, key: &str) -> RedisResult<()> {
        self.migrate(from, to, &[key.to_owned()])
    }

    fn migrate(&self, from: usize, to: usize, keys: &[String]) -> RedisResult<()> {
        let port = self.nodes[to].port().to_string();
        let head = ["MIGRATE", "127.0.0.1", &port, "", "0", MIGRATE_MS, "KEYS"];
        let keys = keys.iter().map(String::as_str);
        self.nodes[from].say(&Vec::from_iter(head.into_iter().chain(keys)))
    }

    /// Moves the keys of a moving slot.
    ///
    /// # Errors
    /// A node refuses the command.
    pub fn move_keys(&self, slot: usize, from: usize, to: usize) -> RedisResult<()> {
        let slot = slot.to_string();
        loop {
            let some = ["CLUSTER", "GETKEYSINSLOT", &slot, KEYS_AT_ONCE];
            let keys: Vec<String> = self.nodes[from].say(&some)?;
            if keys.is_empty() {
                return Ok(());
            }
            self.migrate(from, to, &keys)?;
        }
    }

    /// Ends the move: the slot belongs to the other master.
    ///
    /// # Errors
    /// A node refuses the command.
    pub fn end_move(&self, slot: usize, from: usize, to: usize) -> RedisResult<()> {
        let (slot, id) = (slot.to_string(), self.id(to)?);
        for at in [to, from] {
            self.nodes[at].say::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])?;
        }
        Ok(())
    }
}
