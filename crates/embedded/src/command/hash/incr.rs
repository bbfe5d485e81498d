//! Counting in fields.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{extended, int, refuse, would_overflow},
        decimal,
        number::Extended,
        word,
    },
    resp::parse_integer,
    store::Hash,
};

pub(in crate::command) fn hincrby(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, field) = (&args[1], &args[2]);
    let by = int(&args[3])?;
    let value = match ctx.get::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(text) => parse_integer(&text).ok_or_else(|| refuse("hash value is not an integer"))?,
        None => 0,
    };
    let value = value.checked_add(by).ok_or_else(would_overflow)?;
    ctx.get_or_make::<Hash>(key)?.set(field, decimal(value));
    ctx.wrote([key], args.to_vec());
    Ok(Reply::Int(value))
}

pub(in crate::command) fn hincrbyfloat(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, field) = (&args[1], &args[2]);
    let by = extended(&args[3])?;
    if by.is_infinite() {
        return Err(refuse("value is NaN or Infinity"));
    }
    let value = match ctx.get::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(text) => Extended::parse(&text).ok_or_else(|| refuse("hash value is not a float"))?,
        None => Extended::ZERO,
    };
    let sum = value
        .add(by)
        .ok_or_else(|| refuse("increment would produce NaN or Infinity"))?;
    let text: Bytes = sum.to_text().into();
    ctx.get_or_make::<Hash>(key)?.set(field, text.clone());
    // The result is logged, not the increment, so that a replay needs no arithmetic.
    ctx.wrote(
        [key],
        vec![word("HSET"), key.clone(), field.clone(), text.clone()],
    );
    Ok(Reply::Bulk(text))
}
