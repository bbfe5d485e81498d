//! The commands about the server as a whole: TIME, ROLE, COMMAND, MEMORY and their like.

use bytes::Bytes;

use super::{
    Ctx, Flags, Keys, Outcome, Run, Spec,
    args::{int, is_word, refuse, syntax_error},
    table,
};
use crate::{
    Reply,
    engine::Call,
    store::{EntryRef, Ranked, Value},
};

const FAST: Flags = Flags::FAST.or(Flags::LOADING).or(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);
const OPEN: Flags = Flags::LOADING.or(Flags::STALE);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Spec] = &[
    Spec::session("bgrewriteaof", 1, ADMIN, NONE, bgrewriteaof),
    Spec::session("command", -1, OPEN.or(Flags::CONTAINER), NONE, command),
    Spec::session("command|count", 2, OPEN, NONE, command_count),
    Spec::session("command|docs", -2, OPEN, NONE, command_docs),
    Spec::session("command|getkeys", -4, OPEN, NONE, command_getkeys),
    Spec::session("command|info", -2, OPEN, NONE, command_info),
    Spec::session("command|list", -2, OPEN, NONE, command_list),
    Spec::session("lastsave", 1, FAST, NONE, lastsave),
    Spec {
        name: "memory",
        arity: -2,
        flags: Flags::CONTAINER,
        keys: NONE,
        run: Run::Data(memory_usage),
    },
    Spec {
        name: "memory|usage",
        arity: -3,
        flags: Flags::READONLY,
        keys: Keys::range(2, 2, 1),
        run: Run::Data(memory_usage),
    },
    Spec::session("role", 1, FAST.or(Flags::NOSCRIPT), NONE, role),
    Spec::session(
        "shutdown",
        -1,
        ADMIN.or(OPEN).or(Flags::NO_MULTI),
        NONE,
        shutdown,
    ),
    Spec::session("time", 1, FAST, NONE, time),
    Spec::session("wait", 3, Flags::NOSCRIPT, NONE, wait),
];

fn text(text: impl ToString) -> Reply {
    Reply::Bulk(text.to_string().into())
}

fn length(length: usize) -> Reply {
    Reply::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

fn time(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let (seconds, rest) = (call.now_us / 1_000_000, call.now_us % 1_000_000);
    Ok(Reply::Array(vec![text(seconds), text(rest)]))
}

fn role(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Array(vec![
        text("master"),
        Reply::Int(0),
        Reply::Array(Vec::new()),
    ]))
}

/// Nothing is saved but by the log, which has been written to since the start.
fn lastsave(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Int(
        i64::try_from(call.world.started_ms / 1_000).unwrap_or(i64::MAX),
    ))
}

/// There are no replicas to wait for: the answer is there at once.
fn wait(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    int(&args[1])?;
    let not_integer = |_| refuse("timeout is not an integer or out of range");
    if int(&args[2]).map_err(not_integer)? < 0 {
        return Err(refuse("timeout is negative"));
    }
    Ok(Reply::Int(0))
}

fn shutdown(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Err(refuse(
        "the engine lives in a process that it cannot end: stop that process",
    ))
}

fn bgrewriteaof(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let Some(journal) = &mut call.world.journal else {
        return Err(refuse("this engine keeps no append only file"));
    };
    journal.start_rewrite().map_err(refuse)?;
    Ok(Reply::Status(
        "Background append only file rewriting started".to_owned(),
    ))
}

/// About so many bytes a key takes beside its name and its content.
const KEY_OVERHEAD: usize = 96;

/// About so many bytes an item takes beside its content.
const ITEM_OVERHEAD: usize = 48;

/// An estimate: the bytes of the names and the content, and what is kept around them.
fn memory_usage(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let mut options = args[3..].chunks(2);
    for option in options.by_ref() {
        match option {
            [word, samples] if is_word(word, "samples") => {
                if int(samples)? < 0 {
                    return Err(syntax_error());
                }
            }
            _ => return Err(syntax_error()),
        }
    }
    ctx.expire(&args[2]);
    let Some(value) = ctx.store.get(ctx.db, &args[2]) else {
        return Ok(Reply::Nil);
    };
    let items = |bytes: usize, items: usize| bytes + items * ITEM_OVERHEAD;
    let content = match value {
        Value::Str(text) => text.len(),
        Value::List(list) => items(list.iter().map(Bytes::len).sum(), list.len()),
        Value::Set(set) => items(set.iter().map(Bytes::len).sum(), set.len()),
        Value::Hash(hash) => items(
            hash.iter()
                .map(|(field, value)| field.len() + value.len())
                .sum(),
            hash.len() * 2,
        ),
        Value::Stream(stream) => {
            let entries = stream.entries().all();
            let bytes = |entry: EntryRef<'_>| entry.fields().iter().map(Bytes::len).sum::<usize>();
            items(entries.map(bytes).sum(), stream.len())
        }
        Value::Zset(zset) => {
            let ranking = zset.ranking();
            let bytes = ranking
                .range(0..zset.len())
                .map(|Ranked { member, .. }| member.len());
            items(bytes.sum(), zset.len() * 2)
        }
    };
    Ok(length(KEY_OVERHEAD + args[2].len() + content))
}

fn command(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let top = table::all().filter(|spec| !spec.name.contains('|'));
    Ok(Reply::Array(top.map(describe).collect()))
}

fn command_count(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(length(
        table::all().filter(|spec| !spec.name.contains('|')).count(),
    ))
}

/// No documentation is carried here; clients do without it.
fn command_docs(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Map(Vec::new()))
}

fn command_info(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let names = &args[2..];
    if names.is_empty() {
        return command(call, args);
    }
    Ok(Reply::Array(
        names
            .iter()
            .map(|name| by_name(name).map_or(Reply::Nil, describe))
            .collect(),
    ))
}

fn by_name(name: &[u8]) -> Option<&'static Spec> {
    table::all().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

fn command_list(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let pattern = match &args[2..] {
        [] => None,
        [by, kind, pattern] if is_word(by, "filterby") && is_word(kind, "pattern") => {
            Some(pattern.to_ascii_lowercase())
        }
        [by, kind, _] if is_word(by, "filterby") => {
            if !is_word(kind, "module") && !is_word(kind, "aclcat") {
                return Err(syntax_error());
            }
            // There are no modules and no categories: nothing is in one.
            return Ok(Reply::Array(Vec::new()));
        }
        _ => return Err(syntax_error()),
    };
    let wanted = |name: &str| {
        pattern
            .as_ref()
            .is_none_or(|pattern| super::glob_match(pattern, name.as_bytes()))
    };
    let names = table::all()
        .map(|spec| spec.name)
        .filter(|name| wanted(name));
    Ok(Reply::Array(names.map(text).collect()))
}

fn command_getkeys(_: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let command = &args[2..];
    let spec = table::find(command).map_err(|_| refuse("Invalid command specified"))?;
    if spec.keys == Keys::NONE && !spec.flags.has(Flags::MOVABLE) {
        return Err(refuse("The command has no key arguments"));
    }
    if !spec.takes(command.len()) {
        return Err(refuse("Invalid number of arguments specified for command"));
    }
    if spec.flags.has(Flags::MOVABLE) {
        return Err(refuse("The keys of this command are not in fixed places"));
    }
    Ok(Reply::Array(
        spec.keys_in(command).cloned().map(Reply::Bulk).collect(),
    ))
}

/// A command as `COMMAND` describes it: its subcommands last.
fn describe(spec: &'static Spec) -> Reply {
    let flags = spec
        .flags
        .names()
        .map(|name| Reply::Status(name.to_owned()))
        .collect();
    let prefix = format!("{}|", spec.name);
    let subcommands = table::all()
        .filter(|sub| sub.name.starts_with(&prefix))
        .map(describe);
    let key = |place: i32| Reply::Int(place.into());
    Reply::Array(vec![
        text(spec.name),
        Reply::Int(spec.arity.into()),
        Reply::Set(flags),
        key(spec.keys.first),
        key(spec.keys.last),
        key(spec.keys.step),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(subcommands.collect()),
    ])
}
