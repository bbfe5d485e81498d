//! Reading deadlines.

use bytes::Bytes;

use crate::{
    Reply,
    command::{Ctx, Outcome},
};

pub(in crate::command) fn ttl(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    answer(ctx, &args[1], ctx.now(), 1000)
}

pub(in crate::command) fn pttl(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    answer(ctx, &args[1], ctx.now(), 1)
}

pub(in crate::command) fn expiretime(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    answer(ctx, &args[1], 0, 1000)
}

pub(in crate::command) fn pexpiretime(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    answer(ctx, &args[1], 0, 1)
}

/// Returns the time from `base` to the deadline; -1 if there is none, -2 if the key does not exist.
fn answer(ctx: &mut Ctx<'_>, key: &Bytes, base: i64, unit: u64) -> Outcome {
    if !ctx.exists(key) {
        return Ok(Reply::Int(-2));
    }
    let Some(deadline) = ctx.store.deadline(ctx.db, key) else {
        return Ok(Reply::Int(-1));
    };
    let time = deadline.saturating_sub(base).max(0).unsigned_abs();
    // Rounded to the nearest second.
    let time = if unit == 1 { time } else { (time + 500) / unit };
    Ok(Reply::Int(i64::try_from(time).unwrap_or(i64::MAX)))
}
