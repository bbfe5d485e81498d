//! Version of the server, its round trip, and the number of its clients.

use std::time::Duration;

use super::facts::Facts;
use super::{Finding, Level};
use crate::conn::Unsuitable;

/// Percentage of the allowed clients from which a finding is made.
const FULL: u64 = 80;
/// Greatest accepted round trip. Each job needs several.
const FAR: Duration = Duration::from_millis(20);

pub(super) fn version(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "version";
    if let Some(version) = facts.info("meshwork_version") {
        return vec![Finding::ok(
            CHECK,
            format!("the embedded engine of Meshwork {version}"),
        )];
    }
    let Some(version) = facts.info("redis_version") else {
        return Vec::new();
    };
    if Unsuitable::is_too_old(version) {
        let what = format!("Redis {version}");
        let why = "scripts with flags came with Redis 7; Meshwork refuses to work there";
        let remedy = "upgrade it to Redis 7.0 or newer, or take Valkey";
        return vec![Finding::bad(Level::Problem, CHECK, what, why, remedy)];
    }
    let what = match facts.info("valkey_version") {
        Some(valkey) => format!("Valkey {valkey}"),
        None => format!("Redis {version}"),
    };
    vec![Finding::ok(CHECK, what)]
}

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    [clients(facts), latency(facts)]
        .into_iter()
        .flatten()
        .collect()
}

fn clients(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "clients";
    let most = facts.number("maxclients");
    let most = most.or_else(|| facts.setting("maxclients")?.parse().ok())?;
    let now = facts.number("connected_clients")?;
    let what = format!("{now} of {most} clients");
    if now.saturating_mul(100) < most.saturating_mul(FULL) {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "a worker keeps a connection per queue that it listens to; those beyond the limit are refused";
    let remedy = "CONFIG SET maxclients with more, and the same in its configuration file; CLIENT LIST shows \
                  who is there";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}

fn latency(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "latency";
    let took = facts.round_trip;
    let what = format!("a round trip takes {:.2} ms", took.as_secs_f64() * 1000.0);
    if took < FAR {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "each job costs several round trips, one after another";
    let remedy = "put workers near the server; `redis-cli --latency` and SLOWLOG GET distinguish latency from load";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}
