//! XLEN, XRANGE, XREVRANGE: reading by ids.

use bytes::Bytes;

use super::{entry_reply, ids};
use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{int, is_word, syntax_error},
    },
    store::Stream,
};

pub(in crate::command) fn xlen(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let stream = ctx.get::<Stream>(&args[1])?;
    Ok(Reply::count(stream.map_or(0, Stream::len)))
}

pub(in crate::command) fn xrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, &args[2], &args[3], false)
}

pub(in crate::command) fn xrevrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, &args[3], &args[2], true)
}

fn range(ctx: &mut Ctx<'_>, args: &[Bytes], from: &[u8], to: &[u8], backwards: bool) -> Outcome {
    let (from, to) = (ids::start(from)?, ids::end(to)?);
    let mut count = None;
    let mut rest = &args[4..];
    while let [option, tail @ ..] = rest {
        match tail {
            [value, tail @ ..] if is_word(option, "COUNT") => {
                count = Some(usize::try_from(int(value)?).unwrap_or(0));
                rest = tail;
            }
            _ => return Err(syntax_error()),
        }
    }
    let Some(stream) = ctx.get::<Stream>(&args[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    if count == Some(0) {
        return Ok(Reply::NilArray);
    }
    let entries = stream.entries().range(from, to);
    let count = count.unwrap_or(usize::MAX);
    Ok(Reply::Array(if backwards {
        entries.rev().take(count).map(entry_reply).collect()
    } else {
        entries.take(count).map(entry_reply).collect()
    }))
}
