//! Commands on streams and consumer groups.

mod ack;
mod add;
mod autoclaim;
mod claim;
mod claims;
mod delete;
mod deliver;
mod group;
mod ids;
mod info;
mod pending;
mod range;
mod read;
mod trim;

use bytes::Bytes;

use crate::{
    Reply,
    command::Stop,
    store::{EntryRef, StreamId},
};

pub(super) use ack::xack;
pub(super) use add::xadd;
pub(super) use autoclaim::xautoclaim;
pub(super) use claim::xclaim;
pub(super) use delete::{xdel, xsetid};
pub(super) use group::{
    create as group_create, createconsumer as group_createconsumer,
    delconsumer as group_delconsumer, destroy as group_destroy, help as group_help,
    setid as group_setid,
};
pub(super) use info::{
    consumers as info_consumers, groups as info_groups, help as info_help, stream as info_stream,
};
pub(super) use pending::xpending;
pub(super) use range::{xlen, xrange, xrevrange};
pub(super) use read::{xread, xreadgroup};
pub(super) use trim::xtrim;

fn id_reply(id: StreamId) -> Reply {
    Reply::Bulk(id.text())
}

/// Returns an entry as a reply: its id, and alternately names and values.
fn entry_reply(entry: EntryRef<'_>) -> Reply {
    let fields = entry.fields().into_iter().map(Reply::Bulk).collect();
    Reply::Array(vec![id_reply(entry.id()), Reply::Array(fields)])
}

/// Returns a number of items, where 0 stands for all.
fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// Returns the error for a missing group or key.
fn no_group(key: &Bytes, group: &Bytes, what_for: &str) -> Stop {
    let [key, group] = [key, group].map(shown);
    let text = format!("No such key '{key}' or consumer group '{group}'{what_for}");
    Stop::Error(format!("NOGROUP {text}"))
}

/// Returns the error for a missing group of an existing key.
fn no_group_in(key: &Bytes, group: &Bytes) -> Stop {
    let [key, group] = [key, group].map(shown);
    let text = format!("No such consumer group '{group}' for key name '{key}'");
    Stop::Error(format!("NOGROUP {text}"))
}

/// Returns a name as errors show it: up to the first NUL.
fn shown(name: &Bytes) -> String {
    String::from_utf8_lossy(crate::command::number::until_nul(name)).into_owned()
}

/// Returns the reply of a HELP.
fn help(command: &str, lines: &[&str]) -> Reply {
    let head = format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let foot = ["HELP", "    Prints this help."];
    let lines = lines.iter().chain(&foot).map(|line| (*line).to_owned());
    let lines = std::iter::once(head).chain(lines);
    Reply::Array(lines.map(Reply::Status).collect())
}
