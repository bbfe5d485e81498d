//! SET and the older commands with a part of its options.

use bytes::Bytes;

use super::expiry::{Unit, deadline};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, syntax_error, wrong_arity},
        decimal, word,
    },
    store::Value,
};

#[derive(Default)]
struct Options<'a> {
    only_new: bool,
    only_existing: bool,
    get: bool,
    keep_deadline: bool,
    time: Option<(Unit, &'a Bytes)>,
}

impl<'a> Options<'a> {
    fn parse(args: &'a [Bytes]) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut rest = args;
        while let [option, tail @ ..] = rest {
            rest = tail;
            let is = |word| is_word(option, word);
            let unit = [
                ("EX", Unit::Seconds),
                ("PX", Unit::Millis),
                ("EXAT", Unit::SecondsAt),
                ("PXAT", Unit::MillisAt),
            ]
            .into_iter()
            .find(|(word, _)| is(word));
            if is("NX") && !options.only_existing {
                options.only_new = true;
            } else if is("XX") && !options.only_new {
                options.only_existing = true;
            } else if is("GET") {
                options.get = true;
            } else if is("KEEPTTL") && options.time.is_none() {
                options.keep_deadline = true;
            } else if let (Some((_, unit)), [time, tail @ ..]) = (unit, tail)
                && !options.keep_deadline
                && options.time.is_none_or(|(before, _)| before == unit)
            {
                options.time = Some((unit, time));
                rest = tail;
            } else {
                return Err(syntax_error());
            }
        }
        Ok(options)
    }
}

pub(in crate::command) fn set(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, value) = (&args[1], &args[2]);
    let options = Options::parse(&args[3..])?;
    let deadline = match options.time {
        Some((unit, time)) => Some(deadline(ctx, args, unit, time)?),
        None => None,
    };
    let old = if options.get {
        Some(ctx.get::<Bytes>(key)?.cloned())
    } else {
        None
    };
    let found = ctx.exists(key);
    let skip = (options.only_new && found) || (options.only_existing && !found);
    if !skip {
        store(ctx, key, value, deadline, options.keep_deadline);
    }
    Ok(match old {
        Some(old) => old.map_or(Reply::Nil, Reply::Bulk),
        None if skip => Reply::Nil,
        None => Reply::ok(),
    })
}

fn store(ctx: &mut Ctx<'_>, key: &Bytes, value: &Bytes, deadline: Option<i64>, keep: bool) {
    ctx.put(ctx.db, key, Value::Str(value.clone()));
    if !keep {
        ctx.store.set_deadline(ctx.db, key, deadline);
    }
    let mut command = vec![word("SET"), key.clone(), value.clone()];
    if let Some(deadline) = deadline {
        command.extend([word("PXAT"), decimal(deadline)]);
    } else if keep {
        command.push(word("KEEPTTL"));
    }
    ctx.wrote([key], command);
}

pub(in crate::command) fn setnx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    if ctx.exists(&args[1]) {
        return Ok(Reply::Int(0));
    }
    store(ctx, &args[1], &args[2], None, false);
    Ok(Reply::Int(1))
}

pub(in crate::command) fn setex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_for(ctx, args, Unit::Seconds)
}

pub(in crate::command) fn psetex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_for(ctx, args, Unit::Millis)
}

fn set_for(ctx: &mut Ctx<'_>, args: &[Bytes], unit: Unit) -> Outcome {
    let deadline = deadline(ctx, args, unit, &args[2])?;
    store(ctx, &args[1], &args[3], Some(deadline), false);
    Ok(Reply::ok())
}

pub(in crate::command) fn getset(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let old = ctx.get::<Bytes>(&args[1])?.cloned();
    store(ctx, &args[1], &args[2], None, false);
    Ok(old.map_or(Reply::Nil, Reply::Bulk))
}

pub(in crate::command) fn mset(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_all(ctx, pairs(args)?);
    Ok(Reply::ok())
}

pub(in crate::command) fn msetnx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let pairs = pairs(args)?;
    if pairs.iter().any(|[key, _]| ctx.exists(key)) {
        return Ok(Reply::Int(0));
    }
    set_all(ctx, pairs);
    Ok(Reply::Int(1))
}

fn pairs(args: &[Bytes]) -> Result<&[[Bytes; 2]], Stop> {
    match args[1..].as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(wrong_arity(args)),
    }
}

fn set_all(ctx: &mut Ctx<'_>, pairs: &[[Bytes; 2]]) {
    for [key, value] in pairs {
        ctx.expire(key);
        ctx.put(ctx.db, key, Value::Str(value.clone()));
        ctx.store.set_deadline(ctx.db, key, None);
    }
    let command = std::iter::once(word("MSET")).chain(pairs.as_flattened().iter().cloned());
    ctx.wrote(pairs.iter().map(|[key, _]| key), command.collect());
}
