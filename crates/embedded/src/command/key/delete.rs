//! Removing keys.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, syntax_error},
        word,
    },
    store::{DATABASES, Effect},
};

/// DEL and UNLINK.
pub(in crate::command) fn del(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let mut command = vec![word("DEL")];
    for key in &args[1..] {
        ctx.expire(key);
        if ctx.store.remove(ctx.db, key).is_some() {
            command.push(key.clone());
        }
    }
    let removed = command.len() - 1;
    if removed > 0 {
        let keys = command[1..].to_vec();
        ctx.wrote(&keys, command);
    }
    Ok(Reply::count(removed))
}

pub(in crate::command) fn flushdb(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    check_flush(args)?;
    ctx.store.flush(ctx.db);
    ctx.effects.push(Effect {
        db: ctx.db,
        args: vec![word("FLUSHDB")],
    });
    Ok(Reply::ok())
}

pub(in crate::command) fn flushall(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    check_flush(args)?;
    for db in 0..DATABASES {
        ctx.store.flush(db);
    }
    ctx.effects.push(Effect {
        db: ctx.db,
        args: vec![word("FLUSHALL")],
    });
    Ok(Reply::ok())
}

fn check_flush(args: &[Bytes]) -> Result<(), Stop> {
    match args {
        [_] => Ok(()),
        [_, how] if is_word(how, "SYNC") || is_word(how, "ASYNC") => Ok(()),
        _ => Err(syntax_error()),
    }
}
