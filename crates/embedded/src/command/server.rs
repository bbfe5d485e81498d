//! The commands about the server as a whole: TIME, ROLE, MEMORY and their like.

use bytes::Bytes;

use super::{
    Ctx, Flags, Keys, Outcome, Run, Spec,
    args::{int, is_word, refuse, syntax_error},
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
    Ok(Reply::count(KEY_OVERHEAD + args[2].len() + content))
}
