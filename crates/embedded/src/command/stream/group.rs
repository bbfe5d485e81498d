//! XGROUP: creates, moves and destroys groups and their consumers.

use bytes::Bytes;

use super::{
    claims::log_consumer,
    ids::{self, id_or_end},
    no_group_in,
};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, refuse, wrong_subcommand},
    },
    store::{Entries, Group, Marks, Stream, StreamId},
};

/// Greatest number of arguments of CREATE.
const CREATE_ARGS_MAX: usize = 8;
/// Numbers of arguments of SETID, without and with its option.
const SETID_ARGS: [usize; 2] = [5, 7];

/// Options of CREATE and SETID.
struct Options {
    make_stream: bool,
    /// Number of entries that the group has read; `None` if unknown.
    read: Option<i64>,
}

impl Options {
    fn parse(args: &[Bytes], creates: bool) -> Result<Self, Stop> {
        let mut options = Self {
            make_stream: false,
            read: None,
        };
        let mut rest = &args[5..];
        while let [option, tail @ ..] = rest {
            rest = match tail {
                _ if creates && is_word(option, "MKSTREAM") => {
                    options.make_stream = true;
                    tail
                }
                [value, tail @ ..] if is_word(option, "ENTRIESREAD") => {
                    options.read = entries_read(value)?;
                    tail
                }
                _ => return Err(wrong_subcommand(args)),
            };
        }
        Ok(options)
    }
}

fn entries_read(arg: &[u8]) -> Result<Option<i64>, Stop> {
    match int(arg)? {
        -1 => Ok(None),
        0.. => int(arg).map(Some),
        _ => Err(refuse("value for ENTRIESREAD must be positive or -1")),
    }
}

fn no_stream() -> Stop {
    refuse(
        "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
         use the MKSTREAM option to create an empty stream automatically.",
    )
}

/// Returns the group of a subcommand, which must exist.
fn group<'c>(
    ctx: &'c mut Ctx<'_>,
    args: &[Bytes],
) -> Result<(&'c mut Group, &'c Entries, Marks), Stop> {
    let (key, name) = (&args[2], &args[3]);
    let stream = ctx.get_mut::<Stream>(key)?.ok_or_else(no_stream)?;
    let group = stream.group_mut(name);
    group.ok_or_else(|| no_group_in(key, name))
}

pub(in crate::command) fn create(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, name) = (&args[2], &args[3]);
    let options = Options::parse(args, true)?;
    let stream = ctx.get::<Stream>(key)?;
    let is_new = stream.is_none();
    if is_new && !options.make_stream {
        return Err(no_stream());
    }
    if args.len() > CREATE_ARGS_MAX {
        return Err(wrong_subcommand(args));
    }
    let last = if is_word(&args[4], "$") {
        stream.map_or(StreamId::MIN, |stream| stream.marks().last)
    } else {
        ids::id(&args[4])?
    };
    let stream = ctx.get_or_make::<Stream>(key)?;
    if !stream.add_group(name, last, options.read) {
        let text = "BUSYGROUP Consumer Group name already exists";
        return Err(Stop::Error(text.to_owned()));
    }
    // For WATCH, a new group does not change a stream.
    ctx.wrote(is_new.then_some(key), args.to_vec());
    Ok(Reply::ok())
}

pub(in crate::command) fn setid(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let options = Options::parse(args, false)?;
    let (group, _, marks) = group(ctx, args)?;
    if !SETID_ARGS.contains(&args.len()) {
        return Err(wrong_subcommand(args));
    }
    group.last = if is_word(&args[4], "$") {
        marks.last
    } else {
        id_or_end(&args[4], 0)?
    };
    group.read = options.read;
    ctx.wrote([], args.to_vec());
    Ok(Reply::ok())
}

pub(in crate::command) fn destroy(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[2];
    let stream = ctx.get_mut::<Stream>(key)?.ok_or_else(no_stream)?;
    let destroyed = stream.remove_group(&args[3]);
    if destroyed {
        ctx.wrote([], args.to_vec());
        // Clients that wait in it are notified.
        ctx.store.signal(ctx.db, key);
    }
    Ok(Reply::Int(i64::from(destroyed)))
}

pub(in crate::command) fn createconsumer(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let now = ctx.clock();
    let (group, ..) = group(ctx, args)?;
    let created = group.add_consumer(&args[4], now);
    if created {
        log_consumer(ctx, &args[2], &args[3], &args[4]);
    }
    Ok(Reply::Int(i64::from(created)))
}

pub(in crate::command) fn delconsumer(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (group, ..) = group(ctx, args)?;
    let pending = group.remove_consumer(&args[4]);
    if pending.is_some() {
        ctx.wrote([], args.to_vec());
    }
    Ok(Reply::count(pending.unwrap_or(0)))
}

pub(in crate::command) fn help(_: &mut Ctx<'_>, _: &[Bytes]) -> Outcome {
    Ok(super::help(
        "XGROUP",
        &[
            "CREATE <key> <groupname> <id|$> [option]",
            "    Create a new consumer group. Options are:",
            "    * MKSTREAM",
            "      Create the empty stream if it does not exist.",
            "    * ENTRIESREAD entries_read",
            "      Set the group's entries_read counter (internal use).",
            "CREATECONSUMER <key> <groupname> <consumer>",
            "    Create a new consumer in the specified group.",
            "DELCONSUMER <key> <groupname> <consumer>",
            "    Remove the specified consumer.",
            "DESTROY <key> <groupname>",
            "    Remove the specified group.",
            "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "    Set the current group ID and entries_read counter.",
        ],
    ))
}
