//! Blocking commands on lists.
//!
//! A blocked client is served by running its command again for the one key that became ready ([`Ctx::woken_by`]). If
//! that key is not a list any more, the client stays blocked.

use bytes::Bytes;

use super::{
    End,
    pop::{Wanted, pop_one},
    transfer::transfer,
};
use crate::{
    Reply,
    command::{Ctx, Outcome, Stop, args::timeout_ms},
    store::Value,
};

pub(in crate::command) fn blpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, End::Left)
}

pub(in crate::command) fn brpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, End::Right)
}

fn pop(ctx: &mut Ctx<'_>, args: &[Bytes], end: End) -> Outcome {
    let (keys, timeout) = (&args[1..args.len() - 1], &args[args.len() - 1]);
    let timeout_ms = timeout_ms(timeout, ctx.now_ms)?;
    for key in &candidates(ctx, keys) {
        if let Some(element) = pop_one(ctx, key, end)? {
            let pair = vec![Reply::Bulk(key.clone()), Reply::Bulk(element)];
            return Ok(Reply::Array(pair));
        }
    }
    Err(Stop::Wait {
        keys: keys.to_vec(),
        timeout_ms,
        otherwise: Reply::NilArray,
        again: None,
    })
}

pub(in crate::command) fn blmpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let wanted = Wanted::parse(&args[2..])?;
    let timeout_ms = timeout_ms(&args[1], ctx.now_ms)?;
    let candidates = candidates(ctx, wanted.keys);
    wanted.pop(ctx, &candidates)?.ok_or_else(|| Stop::Wait {
        keys: wanted.keys.to_vec(),
        timeout_ms,
        otherwise: Reply::NilArray,
        again: None,
    })
}

pub(in crate::command) fn blmove(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let ends = (End::parse(&args[3])?, End::parse(&args[4])?);
    transfer_or_wait(ctx, args, ends, &args[5])
}

pub(in crate::command) fn brpoplpush(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    transfer_or_wait(ctx, args, (End::Right, End::Left), &args[3])
}

fn transfer_or_wait(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    ends: (End, End),
    timeout: &[u8],
) -> Outcome {
    let timeout_ms = timeout_ms(timeout, ctx.now_ms)?;
    let (keys, to) = (&args[1..2], &args[2]);
    for from in &candidates(ctx, keys) {
        if let Some(element) = transfer(ctx, from, to, ends)? {
            return Ok(Reply::Bulk(element));
        }
    }
    Err(Stop::Wait {
        keys: keys.to_vec(),
        timeout_ms,
        otherwise: Reply::Nil,
        again: None,
    })
}

/// Returns the keys to try: all, or the one that the client was woken for if it is a list.
fn candidates(ctx: &mut Ctx<'_>, keys: &[Bytes]) -> Vec<Bytes> {
    match ctx.woken_by.clone() {
        None => keys.to_vec(),
        Some(key) => {
            let serves = matches!(ctx.value(&key), Some(Value::List(_))) && keys.contains(&key);
            if serves { vec![key] } else { Vec::new() }
        }
    }
}
