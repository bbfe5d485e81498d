//! Compares the stored objects of scripts with their index, their history and the counters.

use std::collections::BTreeSet;

use meshwork_broker::Broker;
use meshwork_model::object::NewObject;
use redis::{AsyncCommands, RedisResult};

use crate::snapshot::scan;

/// Fields of an object.
type Stored = (Option<String>, Option<String>, Option<String>, Option<u64>);

/// Content of the store, as it is and as the objects say.
#[derive(Default)]
struct Seen {
    faults: Vec<String>,
    /// Keys of index sets with their members.
    found: BTreeSet<(String, String)>,
    expected: BTreeSet<(String, String)>,
    objects: usize,
    bytes: usize,
}

/// Returns what does not fit together. Nobody may write meanwhile.
///
/// # Errors
/// The server refuses a command.
pub async fn faults(broker: &Broker) -> RedisResult<Vec<String>> {
    let prefix = broker.keys().objects_prefix();
    let mut conn = broker.conn().clone();
    let mut seen = Seen::default();
    for key in scan(broker.conn(), &format!("{prefix}*")).await? {
        let key = String::from_utf8_lossy(&key).into_owned();
        let name = key.strip_prefix(&prefix).unwrap_or_default();
        let Some((space, name)) = name.split_once(':') else {
            seen.faults.push(format!("{key} is in no space"));
            continue;
        };
        let space = format!("{prefix}{space}:");
        if let Some(id) = name.strip_prefix("object:") {
            let fields = ["type", "json", "index", "version"];
            let stored: Stored = conn.hmget(&key, &fields).await?;
            let versions: Vec<String> = conn.lrange(format!("{space}history:{id}"), -1, -1).await?;
            seen.object((&space, id), stored, versions.first());
        } else if let Some(id) = name.strip_prefix("history:") {
            let versions: Vec<String> = conn.lrange(&key, 0, -1).await?;
            let exists: bool = conn.exists(format!("{space}object:{id}")).await?;
            seen.history(&key, &versions, exists);
        } else {
            let members: Vec<String> = conn.zrange(&key, 0, -1).await?;
            let members = members.into_iter().map(|id| (key.clone(), id));
            seen.found.extend(members);
        }
    }
    let usage = broker.keys().objects_usage();
    let usage: (Option<usize>, Option<usize>) = conn.hmget(usage, &["objects", "bytes"]).await?;
    Ok(seen.compared(usage))
}

impl Seen {
    fn object(
        &mut self,
        (space, id): (&str, &str),
        (kind, json, index, version): Stored,
        last: Option<&String>,
    ) {
        let (kind, json) = (kind.unwrap_or_default(), json.unwrap_or_default());
        self.objects += 1;
        self.bytes += json.len();
        let map = serde_json::from_str(&json);
        let Some(object) = map.ok().and_then(|map| NewObject::new(&kind, &map).ok()) else {
            return self
                .faults
                .push(format!("{space}{id} is no object: {json}"));
        };
        let sets = object.index.iter();
        self.expected
            .extend(sets.map(|set| (format!("{space}{set}"), id.to_owned())));
        if index.unwrap_or_default() != object.index.join("\n") {
            self.faults.push(format!("{space}{id} names other sets"));
        }
        let parts = last.map(|text| text.splitn(4, '\n').collect::<Vec<_>>());
        let parts = parts.unwrap_or_default();
        let number = parts.first().and_then(|number| number.parse().ok());
        if (number, parts.get(3)) != (version, Some(&&*json)) {
            self.faults
                .push(format!("{space}{id} is not its last version: {parts:?}"));
        }
    }

    fn history(&mut self, key: &str, versions: &[String], exists: bool) {
        self.bytes += versions.iter().map(String::len).sum::<usize>();
        let number = |text: &String| text.split('\n').next()?.parse::<usize>().ok();
        let numbers: Option<Vec<_>> = versions.iter().map(number).collect();
        let numbers = numbers.unwrap_or_default();
        let follow = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        if !follow || numbers.len() != versions.len() {
            self.faults.push(format!("{key} has gaps: {numbers:?}"));
        }
        let is_deleted = versions.last().is_some_and(|text| text.ends_with('\n'));
        if is_deleted == exists {
            self.faults
                .push(format!("{key}: deleted and there, or neither"));
        }
    }

    fn compared(mut self, (objects, bytes): (Option<usize>, Option<usize>)) -> Vec<String> {
        let only = |these: &BTreeSet<_>, others: &BTreeSet<_>, what: &str| {
            let only = these.difference(others).cloned();
            only.map(|(set, id): (String, String)| format!("{set} {what} {id}"))
                .collect::<Vec<_>>()
        };
        let missing = only(&self.expected, &self.found, "lacks");
        let surplus = only(&self.found, &self.expected, "has");
        self.faults.extend(missing.into_iter().chain(surplus));
        let counted = (objects.unwrap_or(0), bytes.unwrap_or(0));
        if counted != (self.objects, self.bytes) {
            let there = (self.objects, self.bytes);
            self.faults
                .push(format!("counted {counted:?}, there are {there:?}"));
        }
        self.faults
    }
}
