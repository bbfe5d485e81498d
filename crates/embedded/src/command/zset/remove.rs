//! Removing members.

use std::ops::Range;

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{int, places},
    },
    store::Zset,
};

pub(in crate::command) fn zrem(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let Some(zset) = ctx.get_mut::<Zset>(key)? else {
        return Ok(Reply::Int(0));
    };
    let removed = args[2..]
        .iter()
        .filter(|member| zset.remove(member))
        .count();
    if removed > 0 {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(removed))
}

pub(in crate::command) fn zremrangebyrank(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (int(&args[2])?, int(&args[3])?);
    remove(ctx, args, |zset| {
        places(start, stop, zset.len()).unwrap_or(0..0)
    })
}

pub(in crate::command) fn zremrangebyscore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let bounds = Bounds::scores(&args[2], &args[3])?;
    remove(ctx, args, |zset| bounds.ranks(zset))
}

pub(in crate::command) fn zremrangebylex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let bounds = Bounds::members(&args[2], &args[3])?;
    remove(ctx, args, |zset| bounds.ranks(zset))
}

fn remove(ctx: &mut Ctx<'_>, args: &[Bytes], ranks: impl FnOnce(&Zset) -> Range<usize>) -> Outcome {
    let key = &args[1];
    let Some(zset) = ctx.get_mut::<Zset>(key)? else {
        return Ok(Reply::Int(0));
    };
    let removed = zset.remove_ranks(ranks(zset)).len();
    if removed > 0 {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(removed))
}
