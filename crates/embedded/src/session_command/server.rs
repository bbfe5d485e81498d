//! Commands about the whole server: TIME, ROLE and similar ones.

use bytes::Bytes;

use super::Command;
use crate::{
    Reply,
    command::{
        Flags, Keys, Outcome,
        args::{int, refuse},
    },
    world::Call,
};

const FAST: Flags = Flags::FAST.or(Flags::LOADING).or(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);
const OPEN: Flags = Flags::LOADING.or(Flags::STALE);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("bgrewriteaof", 1, ADMIN, NONE, bgrewriteaof),
    Command::new("lastsave", 1, FAST, NONE, lastsave),
    Command::new("role", 1, FAST.or(Flags::NOSCRIPT), NONE, role),
    Command::new(
        "shutdown",
        -1,
        ADMIN.or(OPEN).or(Flags::NO_MULTI),
        NONE,
        shutdown,
    ),
    Command::new("time", 1, FAST, NONE, time),
    Command::new("wait", 3, Flags::NOSCRIPT, NONE, wait),
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

/// Returns the start time: data is saved only by the log, from the start on.
fn lastsave(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(Reply::Int(
        i64::try_from(call.world.started_ms / 1_000).unwrap_or(i64::MAX),
    ))
}

/// Returns at once, because there are no replicas to wait for.
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
