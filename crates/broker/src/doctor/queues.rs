//! Jobs and workers: queues that no worker listens to, leases that nobody reclaims, and workers that are gone. Each check
//! reads a bounded part of the store.

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time::parse_iso;

use super::facts::ask;
use super::{Finding, Level, NAMED, such_as};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::{KnownQueues, Stats};

/// Greatest number of leases and workers that are read.
const MOST: usize = 1_000;
/// Pages of keys that are searched for registrations without an expiry.
const PAGES: usize = 20;
/// Milliseconds after which an expired lease or registration is unusual: live workers reclaim leases several times per
/// lease, and register every 5 s.
const LONG_AGO_MS: u64 = 60_000;

/// Examines queues and workers. Finds nothing for a user that may not read them.
pub(super) async fn check(conn: &Conn, keys: &JobKeys) -> Vec<Finding> {
    let broker = Broker::new(conn.clone(), keys.clone());
    let Ok(stats) = broker.stats(&mut KnownQueues::default(), false).await else {
        return Vec::new();
    };
    let found = [
        lost_settings(&broker).await,
        unattended(&stats, keys),
        expired(conn, keys, stats.now_ms).await,
        gone(&broker, conn, keys, stats.now_ms).await,
        faulty(&broker).await,
    ];
    found.into_iter().flatten().collect()
}

/// Settings of queues that another program has deleted.
async fn lost_settings(broker: &Broker) -> Option<Finding> {
    const CHECK: &str = "settings of queues";
    const WHY: &str = "paused queues run, and no limit or sandbox of a queue holds; nothing else knows the settings";
    let config = broker.keys().config();
    let is_lost = broker.has_lost_settings().await.is_ok_and(|lost| lost);
    let what = format!("{config} is gone");
    let remedy = format!(
        "set pauses and limits again, as with `meshwork queue limit set`, or restore a backup; if none is needed, HSET {config} \
         kept 1"
    );
    is_lost.then(|| Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}

/// Waiting jobs that no worker of Meshwork claims.
fn unattended(stats: &Stats, keys: &JobKeys) -> Option<Finding> {
    const CHECK: &str = "queues without workers";
    const WHY: &str = "their jobs wait until a worker listens to that queue";
    let waits = stats.queues.iter().filter(|queue| queue.waiting > 0);
    let mut alone: Vec<_> = waits.filter(|queue| queue.listeners == 0).collect();
    alone.sort_by_key(|queue| std::cmp::Reverse(queue.waiting));
    let first = alone.first()?;
    let prefix = keys.work_prefix();
    let short = |queue: &str| queue.strip_prefix(&prefix).unwrap_or(queue).to_owned();
    let named = alone.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|queue| format!("{} ({} waiting)", short(&queue.queue), queue.waiting))
        .collect();
    let many = alone.len();
    let more = if stats.partial { " or more" } else { "" };
    let what = such_as(format_args!("{many}{more}"), &named);
    let script_type = keys
        .queue_parts(&first.queue)
        .map(|parts| parts.script_type);
    let remedy = format!(
        "start a worker, as with `meshwork worker --type {}`; `meshwork worker list` shows who is there. Workers of other \
         systems listen without being seen",
        script_type.unwrap_or_else(|| "TYPE".to_owned())
    );
    Some(Finding::bad(Level::Warning, CHECK, what, WHY, remedy))
}

/// Leases that expired long ago.
async fn expired(conn: &Conn, keys: &JobKeys, now: u64) -> Option<Finding> {
    const CHECK: &str = "expired leases";
    const WHY: &str = "the workers of these jobs are gone, and no live worker requeues the jobs";
    let mut range = redis::cmd("ZRANGEBYSCORE");
    range.arg(keys.lease()).arg("-inf");
    range.arg(now.saturating_sub(LONG_AGO_MS));
    range.arg("LIMIT").arg(0).arg(MOST);
    let ids: Vec<String> = ask(conn, &range).await.ok()?;
    let what = such_as(many(ids.len())?, &ids);
    let remedy = "start any worker of this namespace, such as `meshwork worker --type TYPE`: it requeues the jobs within a \
                  third of its lease";
    Some(Finding::bad(Level::Warning, CHECK, what, WHY, remedy))
}

/// Workers that have not deregistered, and do not renew their registration.
async fn gone(broker: &Broker, conn: &Conn, keys: &JobKeys, now: u64) -> Option<Finding> {
    const CHECK: &str = "workers that are gone";
    const WHY: &str =
        "they were killed, or lost the server; their jobs return when their leases have expired";
    let before = now.saturating_sub(LONG_AGO_MS);
    let mut range = redis::cmd("ZRANGEBYSCORE");
    range.arg(keys.registrations()).arg("-inf").arg(before);
    range.arg("LIMIT").arg(0).arg(MOST);
    let mut names: Vec<String> = ask(conn, &range).await.ok()?;
    let prefix = keys.presence_prefix();
    for name in &mut names {
        *name = name.strip_prefix(&prefix).unwrap_or(name).to_owned();
    }
    names.extend(silent(broker, before).await);
    names.sort();
    names.dedup();
    let what = such_as(many(names.len())?, &names);
    let remedy = format!(
        "`meshwork worker list` shows the others. A live worker removes such entries; a registration of another system stays \
         until you DEL {prefix}NAME"
    );
    Some(Finding::bad(Level::Hint, CHECK, what, WHY, remedy))
}

/// Workers that cannot start jobs of a type.
async fn faulty(broker: &Broker) -> Option<Finding> {
    const CHECK: &str = "workers with faults";
    const WHY: &str = "jobs of that type wait for another worker, and for the end of the fault";
    let faults = registered(broker, |name, value| {
        let script_type = name.split(':').next()?;
        let record: serde_json::Value = serde_json::from_str(value).ok()?;
        let fault = record.get("faults")?.get(script_type)?.as_str()?;
        Some(format!("{name} ({fault})"))
    });
    let mut faults = faults.await;
    faults.sort();
    let what = such_as(many(faults.len())?, &faults);
    let remedy = "remove the fault on the worker's host, such as a full or missing TMPDIR or a missing interpreter; the \
                  worker checks it every 30 s";
    Some(Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}

/// Returns workers whose registration is there, with a heartbeat from before that time: it has no expiry.
async fn silent(broker: &Broker, before: u64) -> Vec<String> {
    let is_silent = |value: &str| heartbeat(value).is_some_and(|at| at < before);
    let name = |name: &str, value: &str| is_silent(value).then(|| name.to_owned());
    registered(broker, name).await
}

/// Returns what `read` finds in the registrations, by name and value.
async fn registered(broker: &Broker, read: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let (mut found, mut from) = (Vec::new(), 0);
    for _ in 0..PAGES {
        let Ok(page) = broker.workers(from).await else {
            break;
        };
        let actors = page.workers.iter();
        found.extend(actors.filter_map(|(name, value)| read(name, value)));
        from = page.next;
        if from == 0 || found.len() >= MOST {
            break;
        }
    }
    found
}

/// Returns the time of the last heartbeat in a registration, which is JSON.
fn heartbeat(registration: &str) -> Option<u64> {
    let (_, rest) = registration.split_once("\"last_heartbeat\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let (time, _) = rest.strip_prefix('"')?.split_once('"')?;
    parse_iso(time)
}

/// Returns a number for people; `None` for zero.
fn many(number: usize) -> Option<String> {
    let more = if number >= MOST { " or more" } else { "" };
    (number > 0).then(|| format!("{number}{more}"))
}
