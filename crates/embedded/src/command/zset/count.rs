//! Counting members.

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    Reply,
    command::{Ctx, Outcome},
    store::Zset,
};

pub(in crate::command) fn zcount(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let bounds = Bounds::scores(&args[2], &args[3])?;
    Ok(Reply::count(
        ctx.get::<Zset>(&args[1])?
            .map_or(0, |zset| bounds.ranks(zset).len()),
    ))
}

pub(in crate::command) fn zlexcount(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let bounds = Bounds::members(&args[2], &args[3])?;
    Ok(Reply::count(
        ctx.get::<Zset>(&args[1])?
            .map_or(0, |zset| bounds.ranks(zset).len()),
    ))
}
