//! XINFO: describes a stream, its groups and their consumers.

use bytes::Bytes;

use super::{entry_reply, id_reply, limit, no_group_in};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, no_such_key, wrong_subcommand},
    },
    store::{Consumer, Group, Pending, Stream, StreamId},
};

/// Default number of entries, and of pending ones, in a FULL report.
const FULL_COUNT: usize = 10;

type Fields = Vec<(Reply, Reply)>;

fn field(name: &'static str, value: Reply) -> (Reply, Reply) {
    (Reply::Bulk(Bytes::from_static(name.as_bytes())), value)
}

fn number(value: Option<i64>) -> Reply {
    value.map_or(Reply::Nil, Reply::Int)
}

fn find<'c>(ctx: &'c mut Ctx<'_>, args: &[Bytes]) -> Result<&'c Stream, Stop> {
    ctx.get::<Stream>(&args[2])?.ok_or_else(no_such_key)
}

pub(in crate::command) fn stream(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let stream = find(ctx, args)?;
    let (nodes, tree) = stream.entries().tree();
    let marks = stream.marks();
    let mut fields = vec![
        field("length", Reply::count(stream.len())),
        field("radix-tree-keys", Reply::count(nodes)),
        field("radix-tree-nodes", Reply::count(tree)),
        field("last-generated-id", id_reply(marks.last)),
        field("max-deleted-entry-id", id_reply(marks.max_deleted)),
        field("entries-added", Reply::Int(marks.added.cast_signed())),
        field("recorded-first-entry-id", id_reply(marks.first)),
    ];
    fields.extend(match full_count(args)? {
        None => brief(stream),
        Some(count) => full(stream, limit(count)),
    });
    Ok(Reply::Map(fields))
}

/// Parses `[FULL [COUNT n]]`.
fn full_count(args: &[Bytes]) -> Result<Option<usize>, Stop> {
    match &args[3..] {
        [] => Ok(None),
        [word] if is_word(word, "FULL") => Ok(Some(FULL_COUNT)),
        [word, option, count] if is_word(word, "FULL") && is_word(option, "COUNT") => {
            Ok(Some(usize::try_from(int(count)?).unwrap_or(FULL_COUNT)))
        }
        _ => Err(wrong_subcommand(args)),
    }
}

fn brief(stream: &Stream) -> Fields {
    let mut entries = stream.entries().all();
    let first = entries.next().map(entry_reply);
    let last = entries.next_back().map(entry_reply).or(first.clone());
    vec![
        field("groups", Reply::count(stream.groups().len())),
        field("first-entry", first.unwrap_or(Reply::Nil)),
        field("last-entry", last.unwrap_or(Reply::Nil)),
    ]
}

fn full(stream: &Stream, count: usize) -> Fields {
    let entries = stream.entries().all().take(count).map(entry_reply);
    let groups = stream
        .groups()
        .map(|(name, group)| full_group(stream, name, group, count));
    vec![
        field("entries", Reply::Array(entries.collect())),
        field("groups", Reply::Array(groups.collect())),
    ]
}

fn full_group(stream: &Stream, name: &Bytes, group: &Group, count: usize) -> Reply {
    let pending = group.pending().iter().take(count);
    let pending = pending.map(|(id, pending)| {
        let mut item = delivery(*id, pending);
        item.insert(1, Reply::Bulk(pending.consumer.clone()));
        Reply::Array(item)
    });
    let consumers = group.consumers().iter();
    let consumers = consumers.map(|(name, consumer)| full_consumer(group, name, consumer, count));
    Reply::Map(vec![
        field("name", Reply::Bulk(name.clone())),
        field("last-delivered-id", id_reply(group.last)),
        field("entries-read", number(group.read)),
        field("lag", number(stream.marks().lag(group))),
        field("pel-count", Reply::count(group.pending().len())),
        field("pending", Reply::Array(pending.collect())),
        field("consumers", Reply::Array(consumers.collect())),
    ])
}

fn full_consumer(group: &Group, name: &Bytes, consumer: &Consumer, count: usize) -> Reply {
    let pending = consumer.pending().iter().take(count);
    let pending = pending.filter_map(|id| group.pending().get_key_value(id));
    let pending = pending.map(|(id, pending)| Reply::Array(delivery(*id, pending)));
    Reply::Map(vec![
        field("name", Reply::Bulk(name.clone())),
        field("seen-time", Reply::Int(consumer.seen)),
        field("pel-count", Reply::count(consumer.pending().len())),
        field("pending", Reply::Array(pending.collect())),
    ])
}

fn delivery(id: StreamId, pending: &Pending) -> Vec<Reply> {
    vec![
        id_reply(id),
        Reply::Int(pending.delivered),
        Reply::Int(pending.count),
    ]
}

pub(in crate::command) fn groups(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let stream = find(ctx, args)?;
    let groups = stream.groups().map(|(name, group)| {
        Reply::Map(vec![
            field("name", Reply::Bulk(name.clone())),
            field("consumers", Reply::count(group.consumers().len())),
            field("pending", Reply::count(group.pending().len())),
            field("last-delivered-id", id_reply(group.last)),
            field("entries-read", number(group.read)),
            field("lag", number(stream.marks().lag(group))),
        ])
    });
    Ok(Reply::Array(groups.collect()))
}

pub(in crate::command) fn consumers(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let now = ctx.clock();
    let stream = find(ctx, args)?;
    let group = stream
        .group(&args[3])
        .ok_or_else(|| no_group_in(&args[2], &args[3]))?;
    let consumers = group.consumers().iter().map(|(name, consumer)| {
        let idle = now.saturating_sub(consumer.seen).max(0);
        Reply::Map(vec![
            field("name", Reply::Bulk(name.clone())),
            field("pending", Reply::count(consumer.pending().len())),
            field("idle", Reply::Int(idle)),
        ])
    });
    Ok(Reply::Array(consumers.collect()))
}

pub(in crate::command) fn help(_: &mut Ctx<'_>, _: &[Bytes]) -> Outcome {
    Ok(super::help(
        "XINFO",
        &[
            "CONSUMERS <key> <groupname>",
            "    Show consumers of <groupname>.",
            "GROUPS <key>",
            "    Show the stream consumer groups.",
            "STREAM <key> [FULL [COUNT <count>]",
            "    Show information about the stream.",
        ],
    ))
}
