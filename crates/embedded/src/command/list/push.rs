//! Pushing elements to the ends of lists.

use bytes::Bytes;

use super::End;
use crate::{
    Reply,
    command::{Ctx, Outcome},
    store::List,
};

pub(in crate::command) fn lpush(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    push(ctx, args, End::Left)
}

pub(in crate::command) fn rpush(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    push(ctx, args, End::Right)
}

pub(in crate::command) fn lpushx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    push_to_existing(ctx, args, End::Left)
}

pub(in crate::command) fn rpushx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    push_to_existing(ctx, args, End::Right)
}

fn push_to_existing(ctx: &mut Ctx<'_>, args: &[Bytes], end: End) -> Outcome {
    if ctx.get::<List>(&args[1])?.is_none() {
        return Ok(Reply::Int(0));
    }
    push(ctx, args, end)
}

fn push(ctx: &mut Ctx<'_>, args: &[Bytes], end: End) -> Outcome {
    let key = &args[1];
    let list = ctx.get_or_make::<List>(key)?;
    for element in &args[2..] {
        end.push(list, element.clone());
    }
    let len = list.len();
    ctx.wrote([key], args.to_vec());
    Ok(Reply::count(len))
}
