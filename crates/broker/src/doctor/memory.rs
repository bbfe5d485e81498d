//! Memory: eviction policy, headroom, and the encoding of records.

use super::facts::Facts;
use super::{Finding, Level};

/// Longest text in a record that Redis stores in its compact encoding.
const LISTPACK_VALUE: u64 = 1024;
/// Percentage of used memory from which a finding is made.
const FULL: u64 = 80;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    [eviction(facts), headroom(facts), packing(facts)]
        .into_iter()
        .flatten()
        .collect()
}

fn eviction(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "eviction";
    let policy = facts
        .info("maxmemory_policy")
        .or_else(|| facts.setting("maxmemory-policy"))?;
    let what = format!("maxmemory-policy is {policy}");
    if policy == "noeviction" {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "it deletes jobs when memory runs out; Meshwork refuses to work there";
    let remedy = "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file";
    Some(Finding::bad(Level::Problem, CHECK, what, why, remedy))
}

fn headroom(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "memory";
    if facts.embedded {
        return None;
    }
    let (used, most) = (facts.number("used_memory")?, facts.number("maxmemory")?);
    let system = facts.number("total_system_memory").unwrap_or(0);
    let mega = |bytes: u64| bytes / (1024 * 1024);
    if most == 0 {
        let what = format!("{} MB in use, and maxmemory is not set", mega(used));
        let why = "a server that takes all memory is killed by the system; with a limit, new jobs are \
                   refused and those that run are finished";
        let limit = match mega(system / 4 * 3) {
            0 => "1gb".to_owned(),
            mb => format!("{mb}mb"),
        };
        let remedy =
            format!("CONFIG SET maxmemory {limit}, and the same in its configuration file");
        return Some(Finding::bad(Level::Hint, CHECK, what, why, remedy));
    }
    let percent = used.saturating_mul(100) / most;
    let what = format!("{percent} % of {} MB in use", mega(most));
    if percent < FULL {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "when it is full, new jobs are refused; those that run are still finished";
    let remedy = "CONFIG SET maxmemory with more, or let ended jobs be forgotten sooner";
    Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
}

fn packing(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "hash-max-listpack-value";
    let bytes: u64 = facts.setting(CHECK)?.parse().ok()?;
    let what = format!("texts of up to {bytes} bytes are kept packed");
    if bytes >= LISTPACK_VALUE {
        return Some(Finding::ok(CHECK, what));
    }
    let why = "a record with one longer text, as a script or an output often is, is kept as a table, which \
               takes more than twice the memory";
    let remedy =
        format!("CONFIG SET {CHECK} {LISTPACK_VALUE}, and the same in its configuration file");
    Some(Finding::bad(Level::Hint, CHECK, what, why, remedy))
}
