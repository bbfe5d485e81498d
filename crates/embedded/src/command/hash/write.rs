//! Setting and removing fields.

use bytes::Bytes;

use crate::{
    Reply,
    command::{Ctx, Outcome, Stop, args::wrong_arity},
    store::Hash,
};

pub(in crate::command) fn hset(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(set_fields(ctx, args)?))
}

pub(in crate::command) fn hmset(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_fields(ctx, args)?;
    Ok(Reply::ok())
}

/// Sets fields, and returns the number of new ones.
fn set_fields(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<usize, Stop> {
    let key = &args[1];
    let (pairs, []) = args[2..].as_chunks() else {
        return Err(wrong_arity(args));
    };
    let hash = ctx.get_or_make::<Hash>(key)?;
    let new = pairs
        .iter()
        .filter(|[field, value]| hash.set(field, value.clone()))
        .count();
    ctx.wrote([key], args.to_vec());
    Ok(new)
}

pub(in crate::command) fn hsetnx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, field) = (&args[1], &args[2]);
    if ctx
        .get::<Hash>(key)?
        .is_some_and(|hash| hash.contains(field))
    {
        return Ok(Reply::Int(0));
    }
    ctx.get_or_make::<Hash>(key)?.set(field, args[3].clone());
    ctx.wrote([key], args.to_vec());
    Ok(Reply::Int(1))
}

pub(in crate::command) fn hdel(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let Some(hash) = ctx.get_mut::<Hash>(key)? else {
        return Ok(Reply::Int(0));
    };
    let removed = args[2..].iter().filter(|field| hash.remove(field)).count();
    if removed > 0 {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(removed))
}
