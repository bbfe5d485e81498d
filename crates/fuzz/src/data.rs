//! All data of both sides, read key by key.

use bytes::Bytes;
use futures_util::FutureExt as _;
use meshwork_embedded::{Handle, Protocol, Reply, Session, decode_reply, encode_reply};

use super::{
    same::{Different, same_but_times, sorted},
    wire::Wire,
};

/// Databases of both sides.
const DATABASES: usize = 16;

/// Greatest difference of two deadlines that were set by two clocks, in milliseconds.
const TIME_TOLERANCE: u64 = 2_000;

/// Compares all databases.
pub(super) fn compare(handle: &Handle, server: &mut Wire) -> Result<(), Different> {
    let mut engine = handle.session();
    for db in 0..DATABASES {
        let mut both = |args: &[&[u8]]| -> Result<[Reply; 2], Different> {
            let theirs = server
                .ask(args)
                .map_err(|error| format!("all data: {error}"))?;
            Ok([ask(&mut engine, args), theirs])
        };
        both(&[b"SELECT", db.to_string().as_bytes()])?;
        let keys = both(&[b"KEYS", b"*"])?.map(names);
        if keys[0] != keys[1] {
            return Err(format!(
                "keys of database {db}\n  engine: {:?}\n  server: {:?}",
                keys[0], keys[1]
            ));
        }
        for key in &keys[0] {
            let kind = both(&[b"TYPE", key])?;
            let read: Vec<&[u8]> = match &kind[0] {
                Reply::Status(kind) => match kind.as_str() {
                    "string" => vec![b"GET", key],
                    "list" => vec![b"LRANGE", key, b"0", b"-1"],
                    "hash" => vec![b"HGETALL", key],
                    "set" => vec![b"SMEMBERS", key],
                    "stream" => vec![b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"],
                    _ => vec![b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
                },
                other => return Err(format!("TYPE {key:?}: {other:?}")),
            };
            let content = both(&read)?;
            let alike = read[0] == b"XINFO" && same_but_times(&content[0], &content[1]);
            let content = content.map(|reply| normal(read[0], reply));
            let [ours, theirs] = both(&[b"PEXPIRETIME", key])?;
            let times = match (&ours, &theirs) {
                (Reply::Int(ours), Reply::Int(theirs)) => {
                    (ours < &0 && ours == theirs) || ours.abs_diff(*theirs) <= TIME_TOLERANCE
                }
                _ => false,
            };
            if kind[0] != kind[1] || !(alike || content[0] == content[1]) || !times {
                let key = String::from_utf8_lossy(key);
                let [one, other] = where_they_part([0, 1].map(|side| content[side].join(" ")));
                return Err(format!(
                    "{key} in database {db}\n  engine: {:?} {one} {ours:?}\n  server: {:?} {other} {theirs:?}",
                    kind[0], kind[1],
                ));
            }
        }
    }
    server
        .ask(&["SELECT", "0"])
        .map_err(|error| error.to_string())
        .map(drop)
}

/// Returns the parts of two texts around their first difference.
fn where_they_part(texts: [String; 2]) -> [String; 2] {
    const BEFORE: usize = 200;
    const SHOWN: usize = 800;
    let [one, other] = &texts;
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other);
    let start = same.count().saturating_sub(BEFORE);
    texts.map(|text| text.chars().skip(start).take(SHOWN).collect())
}

fn ask(engine: &mut Session, args: &[&[u8]]) -> Reply {
    let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
    let reply = engine
        .call(&args)
        .now_or_never()
        .expect("reading does not wait");
    as_seen(&reply, engine.protocol())
}

/// Returns a reply as a client gets it: RESP2 has fewer types.
pub(super) fn as_seen(reply: &Reply, protocol: Protocol) -> Reply {
    let mut bytes = Vec::new();
    encode_reply(reply, protocol, &mut bytes);
    let decoded = decode_reply(&bytes).expect("the engine speaks RESP");
    decoded.expect("a whole reply").0
}

fn names(reply: Reply) -> Vec<Bytes> {
    let Reply::Array(items) = reply else {
        return Vec::new();
    };
    let name = |item| {
        if let Reply::Bulk(name) = item {
            Some(name)
        } else {
            None
        }
    };
    let mut names: Vec<Bytes> = items.into_iter().filter_map(name).collect();
    names.sort_unstable();
    names
}

/// Normalizes content whose order is that of a hash table.
fn normal(command: &[u8], reply: Reply) -> Vec<String> {
    let reply = match reply {
        Reply::Map(pairs) => Reply::Array(
            pairs
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect(),
        ),
        other => other,
    };
    match (command, reply) {
        (b"HGETALL", Reply::Array(items)) => sorted(items, 2),
        (b"SMEMBERS", Reply::Array(items) | Reply::Set(items)) => sorted(items, 1),
        (_, other) => vec![format!("{other:?}")],
    }
}
