//! Redis Cluster: coverage of all slots, and the hash tag of the namespace.

use super::facts::Facts;
use super::{Finding, Level};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "cluster";
    if facts.info("cluster_enabled") != Some("1") {
        return Vec::new();
    }
    let namespace = &facts.namespace;
    if namespace.hash_tag().is_some() {
        let what = format!("all keys of {namespace} share a slot");
        return vec![Finding::ok(CHECK, what)];
    }
    let what = format!("the namespace {namespace} has no hash tag");
    let why = "a cluster would spread its keys over the nodes, where no script sees them all; Meshwork \
               refuses to work there";
    let remedy = format!("--namespace '{{{namespace}}}', or MESHWORK_NAMESPACE='{{{namespace}}}'");
    vec![Finding::bad(Level::Problem, CHECK, what, why, remedy)]
}
