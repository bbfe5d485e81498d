//! Replication: the role of the server, and the data that a failover would lose.

use super::facts::Facts;
use super::{Finding, Level};

const CHECK: &str = "replication";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if facts.embedded {
        return Vec::new();
    }
    match facts.info("role") {
        Some("slave") => vec![replica(facts)],
        Some("master") => master(facts),
        _ => Vec::new(),
    }
}

fn replica(facts: &Facts) -> Finding {
    let master = ["master_host", "master_port"].map(|name| facts.info(name).unwrap_or("?"));
    let what = format!("this is a replica of {}", master.join(":"));
    let why = "a replica refuses whatever writes: no job can be stored or run";
    let remedy = format!(
        "name the master, redis://{}, or the sentinels: redis+sentinel://host,host/service",
        master.join(":")
    );
    Finding::bad(Level::Problem, CHECK, what, why, remedy)
}

fn master(facts: &Facts) -> Vec<Finding> {
    let replicas = facts.number("connected_slaves").unwrap_or(0);
    let needed = facts
        .setting("min-replicas-to-write")
        .and_then(|text| text.parse().ok());
    if needed.is_some_and(|needed: u64| needed > replicas) {
        let what = format!("{replicas} replicas, and min-replicas-to-write is more");
        let why = "the server refuses whatever writes until more replicas are there";
        let remedy = "start the replicas, or CONFIG SET min-replicas-to-write 0";
        return vec![Finding::bad(Level::Problem, CHECK, what, why, remedy)];
    }
    if replicas == 0 {
        let what = "no replica";
        let why = "while this server or its host is down, no job runs; its disk is the only copy";
        let remedy = "REPLICAOF on a second server, and sentinels to watch both";
        return vec![Finding::bad(Level::Hint, CHECK, what, why, remedy)];
    }
    if let Some(confirmed) = facts.confirmations {
        let what = format!(
            "{replicas} replicas; an enqueued job is accepted when {confirmed} have it, so a failover does not lose it"
        );
        return vec![Finding::ok(CHECK, what)];
    }
    let what = format!("{replicas} replicas");
    if needed == Some(0) {
        let why =
            "a master that is cut off from its replicas still accepts jobs, which a failover loses";
        let remedy = "CONFIG SET min-replicas-to-write 1, or ask for confirmation of each submission: \
                      ?wait_replicas=1 in the URL";
        return vec![Finding::bad(Level::Hint, CHECK, what, why, remedy)];
    }
    vec![Finding::ok(CHECK, what)]
}
