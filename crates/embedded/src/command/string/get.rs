//! Reading strings.

use bytes::Bytes;

use super::expiry::{Unit, deadline};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, syntax_error},
    },
    store::Value,
};

pub(in crate::command) fn get(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(ctx
        .get::<Bytes>(&args[1])?
        .cloned()
        .map_or(Reply::Nil, Reply::Bulk))
}

pub(in crate::command) fn getdel(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let Some(value) = ctx.get::<Bytes>(key)?.cloned() else {
        return Ok(Reply::Nil);
    };
    ctx.delete(key);
    Ok(Reply::Bulk(value))
}

/// The change of GETEX.
#[derive(Clone, Copy)]
enum Change<'a> {
    Persist,
    Expire(Unit, &'a Bytes),
}

impl<'a> Change<'a> {
    fn parse(args: &'a [Bytes]) -> Result<Option<Self>, Stop> {
        let mut change = None;
        let mut rest = args;
        while let [option, tail @ ..] = rest {
            let is = |word| is_word(option, word);
            let unit = [
                ("EX", Unit::Seconds),
                ("PX", Unit::Millis),
                ("EXAT", Unit::SecondsAt),
                ("PXAT", Unit::MillisAt),
            ]
            .into_iter()
            .find(|(word, _)| is(word));
            (change, rest) = match (unit, change, tail) {
                (None, None | Some(Change::Persist), _) if is("PERSIST") => {
                    (Some(Change::Persist), tail)
                }
                (Some((_, unit)), None, [time, tail @ ..]) => {
                    (Some(Change::Expire(unit, time)), tail)
                }
                (Some((_, unit)), Some(Change::Expire(before, _)), [time, tail @ ..])
                    if unit == before =>
                {
                    (Some(Change::Expire(unit, time)), tail)
                }
                _ => return Err(syntax_error()),
            };
        }
        Ok(change)
    }
}

pub(in crate::command) fn getex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let change = Change::parse(&args[2..])?;
    let Some(value) = ctx.get::<Bytes>(key)?.cloned() else {
        return Ok(Reply::Nil);
    };
    match change {
        None => {}
        Some(Change::Persist) => {
            ctx.persist(key);
        }
        Some(Change::Expire(unit, time)) => {
            let deadline = deadline(ctx, args, unit, time)?;
            ctx.set_deadline(key, deadline);
        }
    }
    Ok(Reply::Bulk(value))
}

pub(in crate::command) fn strlen(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        ctx.get::<Bytes>(&args[1])?.map_or(0, Bytes::len),
    ))
}

pub(in crate::command) fn mget(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let values = args[1..].iter().map(|key| match ctx.value(key) {
        Some(Value::Str(text)) => Reply::Bulk(text.clone()),
        _ => Reply::Nil,
    });
    Ok(Reply::Array(values.collect()))
}

pub(in crate::command) fn getrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (int(&args[2])?, int(&args[3])?);
    let text = ctx.get::<Bytes>(&args[1])?.cloned().unwrap_or_default();
    if start < 0 && stop < 0 && start > stop {
        return Ok(Reply::Bulk(Bytes::new()));
    }
    // In contrast to ranges of lists, an end before the first byte is the first byte.
    let place = |place: i64| {
        let from_end = if place < 0 {
            i64::try_from(text.len()).unwrap_or(i64::MAX)
        } else {
            0
        };
        usize::try_from(place.saturating_add(from_end)).unwrap_or(0)
    };
    let (start, stop) = (place(start), place(stop).saturating_add(1).min(text.len()));
    Ok(Reply::Bulk(if start < stop {
        text.slice(start..stop)
    } else {
        Bytes::new()
    }))
}
