//! Renaming, copying and moving keys.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, no_such_key, parse_index, refuse, syntax_error},
    },
    store::{DATABASES, Effect},
};

pub(in crate::command) fn rename(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    move_key(ctx, args, false)?;
    Ok(Reply::ok())
}

pub(in crate::command) fn renamenx(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Int(i64::from(move_key(ctx, args, true)?)))
}

fn move_key(ctx: &mut Ctx<'_>, args: &[Bytes], only_new: bool) -> Result<bool, Stop> {
    let (from, to) = (&args[1], &args[2]);
    if !ctx.exists(from) {
        return Err(no_such_key());
    }
    if from == to || (ctx.exists(to) && only_new) {
        return Ok(false);
    }
    let deadline = ctx.store.deadline(ctx.db, from);
    if let Some(value) = ctx.store.remove(ctx.db, from) {
        ctx.put(ctx.db, to, value);
        ctx.store.set_deadline(ctx.db, to, deadline);
    }
    ctx.wrote([from, to], args.to_vec());
    Ok(true)
}

pub(in crate::command) fn copy(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (&args[1], &args[2]);
    let (mut db, mut replace) = (ctx.db, false);
    let mut rest = &args[3..];
    while let [option, tail @ ..] = rest {
        rest = match tail {
            _ if is_word(option, "REPLACE") => {
                replace = true;
                tail
            }
            [index, tail @ ..] if is_word(option, "DB") => {
                db = database(index)?;
                tail
            }
            _ => return Err(syntax_error()),
        };
    }
    if db == ctx.db && from == to {
        return Err(refuse("source and destination objects are the same"));
    }
    let Some(value) = ctx.value(from).cloned() else {
        return Ok(Reply::Int(0));
    };
    ctx.expire_in(db, to);
    if ctx.store.get(db, to).is_some() && !replace {
        return Ok(Reply::Int(0));
    }
    let deadline = ctx.store.deadline(ctx.db, from);
    ctx.put(db, to, value);
    ctx.store.set_deadline(db, to, deadline);
    ctx.store.touch(db, to);
    ctx.effects.push(Effect {
        db: ctx.db,
        args: args.to_vec(),
    });
    Ok(Reply::Int(1))
}

fn database(index: &[u8]) -> Result<usize, Stop> {
    let index = parse_index(index)?;
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < DATABASES);
    index.ok_or_else(|| refuse("DB index is out of range"))
}
