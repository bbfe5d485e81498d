//! Incrementing and decrementing strings that are numbers.

use bytes::Bytes;

use crate::{
    Reply,
    command::number::Extended,
    command::{
        Ctx, Outcome,
        args::{extended, int, refuse, would_overflow},
        decimal, word,
    },
    store::Value,
};

pub(in crate::command) fn incr(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    change(ctx, args, 1)
}

pub(in crate::command) fn decr(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    change(ctx, args, -1)
}

pub(in crate::command) fn incrby(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    change(ctx, args, int(&args[2])?)
}

pub(in crate::command) fn decrby(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let by = int(&args[2])?
        .checked_neg()
        .ok_or_else(|| refuse("decrement would overflow"))?;
    change(ctx, args, by)
}

fn change(ctx: &mut Ctx<'_>, args: &[Bytes], by: i64) -> Outcome {
    let key = &args[1];
    let value = match ctx.get::<Bytes>(key)? {
        Some(text) => int(text)?,
        None => 0,
    };
    let value = value.checked_add(by).ok_or_else(would_overflow)?;
    ctx.put(ctx.db, key, Value::Str(decimal(value)));
    ctx.wrote([key], args.to_vec());
    Ok(Reply::Int(value))
}

pub(in crate::command) fn incrbyfloat(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let value = match ctx.get::<Bytes>(key)? {
        Some(text) => extended(text)?,
        None => Extended::ZERO,
    };
    let sum = value.add(extended(&args[2])?);
    let sum = sum.ok_or_else(|| refuse("increment would produce NaN or Infinity"))?;
    let text: Bytes = sum.to_text().into();
    ctx.put(ctx.db, key, Value::Str(text.clone()));
    // The result is logged, not the increment, so that a replay needs no arithmetic.
    ctx.wrote(
        [key],
        vec![word("SET"), key.clone(), text.clone(), word("KEEPTTL")],
    );
    Ok(Reply::Bulk(text))
}
