//! The other nodes of a Cluster: those that do not answer, and their settings.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::facts::Facts;
use super::{Finding, Level, limits, memory, persistence};
use crate::SlotMap;
use crate::conn::Conn;

/// The nodes of a Cluster; none elsewhere.
#[derive(Default)]
pub(super) struct Nodes {
    slots: SlotMap,
    /// Addresses of those that do not answer.
    silent: BTreeSet<String>,
}

impl Nodes {
    /// Queries all nodes at once, so several silent ones cost the time of one. Findings name what is wrong.
    pub(super) async fn query(conn: &Conn, facts: &Facts) -> (Self, Vec<Finding>) {
        let Ok(Some(slots)) = conn.slots().await else {
            return (Self::default(), Vec::new());
        };
        let home = slots.node_of(facts.namespace.as_str());
        let others = slots.keys().into_iter();
        let others = others.filter(|(node, _)| Some(*node) != home);
        let looked = others.map(async |(node, key)| {
            let facts = facts.of_node(&conn.of_key(&key)).await;
            (node.to_owned(), facts)
        });
        let (mut silent, mut findings) = (BTreeSet::new(), Vec::new());
        for (node, facts) in join_all(looked).await {
            match facts {
                Ok(facts) => findings.extend(faults(&node, &facts)),
                Err(error) => {
                    findings.push(unanswered(&node, &error));
                    silent.insert(node);
                }
            }
        }
        (Self { slots, silent }, findings)
    }

    /// Returns whether the node of a key does not answer, so that each call for the key would wait in vain.
    pub(super) fn is_silent(&self, key: &str) -> bool {
        let node = self.slots.node_of(key);
        node.is_some_and(|node| self.silent.contains(node))
    }
}

fn unanswered(node: &str, error: &redis::RedisError) -> Finding {
    let what = match error.to_string() {
        text if text.contains(node) => format!("no answer: {text}"),
        text => format!("no answer: node {node}: {text}"),
    };
    let why = "its contexts, and the parts of queues there, wait; so do all messages if it has the keys {mw}:…";
    let remedy = "start it again, or send CLUSTER FAILOVER TAKEOVER to a replica; `meshwork context list` shows the contexts \
                  of each node";
    Finding::bad(Level::Problem, "nodes", what, why, remedy)
}

/// Returns what is wrong with the settings of a node. Hints are given for the node of the namespace alone.
fn faults(node: &str, facts: &Facts) -> Vec<Finding> {
    let families: [fn(&Facts) -> Vec<Finding>; 3] =
        [limits::version, memory::check, persistence::check];
    let found = families.iter().flat_map(|family| family(facts));
    let bad = found.filter(|finding| finding.level >= Level::Warning);
    bad.map(|finding| Finding {
        what: format!("node {node}: {}", finding.what),
        ..finding
    })
    .collect()
}
