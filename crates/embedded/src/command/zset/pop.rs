//! Popping the least or the greatest member.

use bytes::Bytes;

use super::scored;
use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{count, syntax_error},
        decimal, word,
    },
    store::Zset,
};

pub(in crate::command) fn zpopmin(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, false)
}

pub(in crate::command) fn zpopmax(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, true)
}

fn pop(ctx: &mut Ctx<'_>, args: &[Bytes], greatest: bool) -> Outcome {
    let count = match args {
        [_, _] => None,
        [_, _, count] => Some(self::count(count)?),
        _ => return Err(syntax_error()),
    };
    let key = &args[1];
    // Without a count the pair is flat in RESP3, too.
    let nested = ctx.resp3 && count.is_some();
    let Some(zset) = ctx.get_mut::<Zset>(key)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let (len, count) = (zset.len(), count.unwrap_or(1).min(zset.len()));
    let mut popped = if greatest {
        zset.remove_ranks(len - count..len)
    } else {
        zset.remove_ranks(0..count)
    };
    if greatest {
        popped.reverse();
    }
    if !popped.is_empty() {
        ctx.drop_if_empty(key);
        let name = if greatest { "ZPOPMAX" } else { "ZPOPMIN" };
        ctx.wrote([key], vec![word(name), key.clone(), decimal(popped.len())]);
    }
    Ok(scored(&popped, true, nested))
}
