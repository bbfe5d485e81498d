//! What ours leave on a server that other systems use too: the shape of its keyspace, what of two of them differs, and
//! which differences may be. The table of these also stands in `docs/footprint.md`.

use std::collections::BTreeSet;

use meshwork_broker::conn::Conn;
use redis::{RedisResult, Value};

use crate::snapshot::keys_outside;

/// A difference that may be between a server on which ours did something, and one on which a program of the other system
/// did the same.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// The key; `*` stands for any text.
    pub key: &'static str,
    /// What is there besides, or, after `lacks `, what is not; `*` stands for any text.
    pub trace: &'static str,
    /// Why.
    pub why: &'static str,
}

const fn may(key: &'static str, trace: &'static str, why: &'static str) -> Exception {
    Exception { key, trace, why }
}

/// All of them.
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

/// A key and something that is so of it.
pub type Trace = (String, String);

/// The shape of a keyspace: of each key its type, whether it has an end, its fields and members; of text that is an
/// object in JSON, the names in it. Times and random ids in values are left out so.
///
/// # Errors
/// When the server does not take a command.
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

/// Whether a key is one of ours alone: no other system reads or writes it.
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

/// Text; of an object in JSON, its names.
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

/// What of `ours` is not so of `theirs` and, after `lacks `, the other way round, without what [`EXCEPTIONS`] lists; and
/// those of the exceptions that were met.
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

/// Whether a text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && fits(rest, &text[at..]))
}
