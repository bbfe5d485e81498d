//! Traces of Meshwork on a server that other systems share: the shape of a keyspace, the difference of two, and the
//! allowed differences. `docs/footprint.md` has the table of the latter.

use std::collections::BTreeSet;

use meshwork_broker::conn::Conn;
use redis::{RedisResult, Value};

use crate::snapshot::keys_outside;

/// An allowed difference between a server on which Meshwork did something, and one on which a program of the other
/// system did the same.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// Key; `*` matches any text.
    pub key: &'static str,
    /// Trace that is added, or, after `lacks `, missing; `*` matches any text.
    pub trace: &'static str,
    /// Reason for the difference.
    pub why: &'static str,
}

const fn may(key: &'static str, trace: &'static str, why: &'static str) -> Exception {
    Exception { key, trace, why }
}

/// All allowed differences.
pub const EXCEPTIONS: &[Exception] = &[
    may(
        "hero:job:*",
        "field mw_*",
        "Meshwork stores its data about a job in the record; other readers ignore unknown fields",
    ),
    may(
        "hero:q:reply:*",
        "end",
        "a reply that nobody reads expires after an hour",
    ),
    may(
        "nooble4:*:streams:main",
        "lacks entry *",
        "a completed action is deleted from the stream, which would otherwise grow for ever",
    ),
    may(
        "nooble4:*:streams:main",
        "lacks * pending in *",
        "a failed action that was answered is acknowledged",
    ),
    may(
        "nooble4:*:streams:main",
        "lacks consumer *",
        "at shutdown, a service of Meshwork deletes its consumer from the group",
    ),
    may(
        "nooble4:*:responses:*",
        "end",
        "a reply that nobody reads expires",
    ),
    may(
        "nooble4:*:meshwork:responses:*",
        "is a list",
        "a client of Meshwork that stops waiting leaves an expiring mark for late replies on its private list",
    ),
    may(
        "nooble4:*:meshwork:responses:*",
        "member given up",
        "this mark",
    ),
    may(
        "hero:stop_queue:*",
        "end",
        "a cancel request expires after a minute if the list did not exist before",
    ),
    may(
        "hero:q:ctl:*",
        "end",
        "a cancel request expires after a minute if the list did not exist before",
    ),
    may(
        "hero:meta:queue:stats:*",
        "*",
        "counters for dashboards, in names that Hero's naming proposal reserves",
    ),
];

/// A key and one of its properties.
pub type Trace = (String, String);

/// Returns the shape of a keyspace: the type of each key, whether it expires, its fields and members. For a text with
/// a JSON object, it has the names only. So times and random ids in values are left out.
///
/// # Errors
/// The server refuses a command.
pub async fn footprint(conn: &Conn) -> RedisResult<BTreeSet<Trace>> {
    let mut traces = BTreeSet::new();
    for key in keys_outside(conn, &[]).await? {
        let name = String::from_utf8_lossy(&key).into_owned();
        if is_own(&name) {
            continue;
        }
        let mut about = redis::pipe();
        about.cmd("TYPE").arg(&key).cmd("PTTL").arg(&key);
        let (kind, left): (String, i64) = about.query_async(&mut conn.clone()).await?;
        let mut note = |trace: String| traces.insert((name.clone(), trace));
        note(format!("is a {kind}"));
        if left >= 0 {
            note("end".to_owned());
        }
        for part in parts(conn, &kind, &key).await? {
            note(part);
        }
    }
    Ok(traces)
}

/// Returns true if no other system reads or writes this key.
fn is_own(key: &str) -> bool {
    let of_hero = |key: &str| {
        let seeds = ["work:", "reply:", "ctl:"];
        !seeds.iter().any(|seed| key.starts_with(seed))
    };
    key.contains(":mw:") || key.strip_prefix("hero:q:").is_some_and(of_hero)
}

async fn parts(conn: &Conn, kind: &str, key: &[u8]) -> RedisResult<Vec<String>> {
    let words: &[&str] = match kind {
        "hash" => &["HKEYS"],
        "list" => &["LRANGE", "0", "-1"],
        "set" => &["SMEMBERS"],
        "zset" => &["ZRANGE", "0", "-1"],
        "stream" => &["XRANGE", "-", "+"],
        _ => &["GET"],
    };
    let mut read = redis::cmd(words[0]);
    read.arg(key).arg(&words[1..]);
    let read: Value = read.query_async(&mut conn.clone()).await?;
    let what = if kind == "hash" { "field" } else { "member" };
    let mut parts = match read {
        Value::BulkString(text) => vec![format!("holds {}", shown(&text))],
        read if kind == "stream" => {
            let entries: Vec<(String, Vec<Vec<u8>>)> = redis::from_redis_value(read)?;
            let entry = |(at, words): (usize, Vec<Vec<u8>>)| {
                let words: Vec<_> = words.iter().map(|word| shown(word)).collect();
                format!("entry {at} {}", words.join(" "))
            };
            let entries = entries.into_iter().map(|(_, words)| words);
            entries.enumerate().map(entry).collect()
        }
        read => {
            let items: Vec<Vec<u8>> = redis::from_redis_value(read)?;
            let item = |item: &Vec<u8>| format!("{what} {}", shown(item));
            items.iter().map(item).collect()
        }
    };
    if kind == "stream" {
        let mut groups = redis::cmd("XINFO");
        let groups: Vec<std::collections::HashMap<String, Value>> = groups
            .arg("GROUPS")
            .arg(key)
            .query_async(&mut conn.clone())
            .await?;
        for group in groups {
            let name: String = redis::from_redis_value(group["name"].clone())?;
            let pending: usize = redis::from_redis_value(group["pending"].clone())?;
            let mut consumers = redis::cmd("XINFO");
            let consumers: Vec<std::collections::HashMap<String, Value>> = consumers
                .arg("CONSUMERS")
                .arg(key)
                .arg(&name)
                .query_async(&mut conn.clone())
                .await?;
            for consumer in consumers {
                let consumer: String = redis::from_redis_value(consumer["name"].clone())?;
                parts.push(format!("consumer {consumer}"));
            }
            parts.push(format!("group {name}"));
            if pending > 0 {
                parts.push(format!("{pending} pending in {name}"));
            }
        }
    }
    Ok(parts)
}

/// Returns a text; for a JSON object, its names.
fn shown(text: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(text) {
        Ok(object) => {
            let names: BTreeSet<_> = object.keys().map(String::as_str).collect();
            let names: Vec<_> = names.into_iter().collect();
            format!("{{{}}}", names.join(","))
        }
        Err(_) => text.escape_ascii().to_string(),
    }
}

/// Returns the traces of `ours` that `theirs` lacks and, after `lacks `, the reverse, without those in
/// [`EXCEPTIONS`]. Also returns the exceptions that occurred.
#[must_use]
pub fn unexplained(
    ours: &BTreeSet<Trace>,
    theirs: &BTreeSet<Trace>,
) -> (Vec<Trace>, BTreeSet<&'static str>) {
    let besides = ours.difference(theirs).cloned();
    let lacking = theirs.difference(ours);
    let lacking = lacking.map(|(key, trace)| (key.clone(), format!("lacks {trace}")));
    let (mut left, mut met) = (Vec::new(), BTreeSet::new());
    for (key, trace) in besides.chain(lacking) {
        let known = |it: &&Exception| fits(it.key, &key) && fits(it.trace, &trace);
        match EXCEPTIONS.iter().find(known) {
            Some(exception) => {
                met.insert(exception.why);
            }
            None => left.push((key, trace)),
        }
    }
    (left, met)
}

/// Returns true if a text matches a pattern in which `*` matches any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && fits(rest, &text[at..]))
}
