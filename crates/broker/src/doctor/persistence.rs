//! Durability after a crash: append-only file, snapshots, and failures to write them.

use super::facts::Facts;
use super::{Finding, Level};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::from_iter(log(facts));
    findings.extend(last_writes(facts));
    if facts.info("loading") == Some("1") {
        let what = "it is loading its data";
        let why = "until then it refuses all calls; workers carry on by themselves afterwards";
        let remedy = "wait; INFO persistence shows how far it is";
        findings.push(Finding::bad(Level::Warning, "loading", what, why, remedy));
    }
    findings
}

fn log(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "persistence";
    let logged = facts.info("aof_enabled")? == "1";
    if logged {
        let sync = facts.setting("appendfsync").unwrap_or("unknown");
        let what = format!(
            "append-only file, appendfsync {sync}{}",
            promise(facts, sync)
        );
        if matches!(sync, "always" | "everysec" | "unknown") {
            return Some(Finding::ok(CHECK, what));
        }
        let why =
            "the system decides when it is written: a power failure loses half a minute or so";
        let remedy =
            "CONFIG SET appendfsync everysec (or always), and the same in its configuration file";
        return Some(Finding::bad(Level::Warning, CHECK, what, why, remedy));
    }
    if facts.embedded {
        return None;
    }
    let remedy = "CONFIG SET appendonly yes, and the same in its configuration file";
    match facts.setting("save") {
        Some("") => {
            let what = "neither append-only file nor snapshots";
            let why = "all jobs are gone when the server ends, however it ends";
            Some(Finding::bad(Level::Problem, CHECK, what, why, remedy))
        }
        Some(save) => {
            let what = format!("snapshots only (save {save}), no append-only file");
            let why =
                "a crash loses all since the last snapshot: jobs that were accepted, and results";
            Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
        }
        None => {
            let what = "no append-only file";
            let why = "a crash loses at least all since the last snapshot";
            Some(Finding::bad(Level::Warning, CHECK, what, why, remedy))
        }
    }
}

/// Describes the answered writes that the server may lose. While the disk syncs, Redis keeps writes back for up to 2 s,
/// and answers them: they are lost with its process. The embedded engine writes before it answers.
fn promise(facts: &Facts, sync: &str) -> &'static str {
    if facts.embedded {
        return ": kill -9 loses no answered write, a power failure the last second";
    }
    let pauses = facts.setting("no-appendfsync-on-rewrite") == Some("yes");
    match sync {
        "always" if pauses => {
            ": a crash loses no answered write, except while the file is rewritten (no-appendfsync-on-rewrite yes)"
        }
        "always" => ": a crash of the server or of its host loses no answered write",
        "everysec" => {
            ": kill -9 of the server, or a power failure, may lose the last 2 s of answered writes; always loses none"
        }
        _ => "",
    }
}

fn last_writes(facts: &Facts) -> Vec<Finding> {
    let writes = [
        (
            "aof_last_write_status",
            "the last write to the append-only file",
        ),
        (
            "aof_last_bgrewrite_status",
            "the last rewrite of the append-only file",
        ),
        ("rdb_last_bgsave_status", "the last snapshot"),
    ];
    let mut findings = Vec::new();
    for (name, which) in writes {
        if facts.info(name).is_some_and(|status| status != "ok") {
            let what = format!("{which} failed");
            let why =
                "what is not on the disk is gone after a crash, and the server may refuse to write";
            let remedy = "look at the server's log, and whether its disk is full; then BGREWRITEAOF or BGSAVE";
            findings.push(Finding::bad(Level::Problem, "disk", what, why, remedy));
        }
    }
    findings
}
