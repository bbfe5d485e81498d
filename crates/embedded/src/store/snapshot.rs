//! A database as commands, for a rewritten log.

use bytes::Bytes;

use super::{
    Effect, Value,
    database::{Database, Entry},
    stream,
};

/// Number of items in one command of a snapshot, as in files that Redis rewrites, which keeps commands short.
const ITEMS: usize = 64;

pub(super) fn effects(db: usize, database: &Database) -> impl Iterator<Item = Effect> {
    let commands = database
        .keys
        .iter()
        .flat_map(|(key, entry)| commands(key, entry));
    commands.map(move |args| Effect { db, args })
}

fn commands<'a>(key: &'a Bytes, entry: &'a Entry) -> impl Iterator<Item = Vec<Bytes>> + use<'a> {
    let deadline = entry.deadline.map(|deadline| {
        vec![
            Bytes::from_static(b"PEXPIREAT"),
            key.clone(),
            deadline.to_string().into(),
        ]
    });
    content(key, &entry.value).chain(deadline)
}

fn content<'a>(key: &'a Bytes, value: &'a Value) -> Box<dyn Iterator<Item = Vec<Bytes>> + 'a> {
    let one = |item: &'a Bytes| [Some(item.clone()), None];
    match value {
        Value::Str(text) => pieces("SET", key, std::iter::once(one(text))),
        Value::List(list) => pieces("RPUSH", key, list.iter().map(one)),
        Value::Set(set) => pieces("SADD", key, set.iter().map(one)),
        Value::Hash(hash) => pieces(
            "HSET",
            key,
            hash.iter().map(|(field, value)| [Some(field), Some(value)]),
        ),
        Value::Stream(stream) => Box::new(stream::commands(key, stream)),
        Value::Zset(zset) => pieces(
            "ZADD",
            key,
            zset.ranking().range(0..zset.len()).map(|ranked| {
                [
                    Some(crate::resp::double_text(ranked.score).into()),
                    Some(ranked.member.clone()),
                ]
            }),
        ),
    }
}

/// The items, each of one or two arguments, in commands of bounded length.
fn pieces<'a>(
    name: &'static str,
    key: &'a Bytes,
    items: impl Iterator<Item = [Option<Bytes>; 2]> + 'a,
) -> Box<dyn Iterator<Item = Vec<Bytes>> + 'a> {
    let mut items = items.peekable();
    Box::new(std::iter::from_fn(move || {
        items.peek()?;
        let mut args = vec![Bytes::from_static(name.as_bytes()), key.clone()];
        args.extend(items.by_ref().take(ITEMS).flatten().flatten());
        Some(args)
    }))
}
