//! Listing and finding keys.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{cursor, is_word},
        glob_match,
        scan::{Options, scan_reply},
    },
};

/// EXISTS and TOUCH.
pub(in crate::command) fn exists(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        args[1..].iter().filter(|key| ctx.exists(key)).count(),
    ))
}

/// TYPE.
pub(in crate::command) fn kind(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let kind = ctx.value(&args[1]).map_or("none", |value| value.kind());
    Ok(Reply::Status(kind.to_owned()))
}

pub(in crate::command) fn dbsize(ctx: &mut Ctx<'_>, _args: &[Bytes]) -> Outcome {
    Ok(Reply::count(ctx.store.len(ctx.db)))
}

pub(in crate::command) fn keys(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let pattern = &args[1][..];
    let found = ctx.store.keys(ctx.db).filter(|key| {
        (pattern == b"*" || glob_match(pattern, key)) && !ctx.store.is_due(ctx.db, key, ctx.now_ms)
    });
    Ok(Reply::Array(found.cloned().map(Reply::Bulk).collect()))
}

pub(in crate::command) fn randomkey(ctx: &mut Ctx<'_>, _args: &[Bytes]) -> Outcome {
    loop {
        let len = ctx.store.len(ctx.db);
        if len == 0 {
            return Ok(Reply::Nil);
        }
        let place = rand::random_range(0..len);
        if let Some(key) = ctx.store.key_at(ctx.db, place).cloned()
            && ctx.exists(&key)
        {
            return Ok(Reply::Bulk(key));
        }
    }
}

pub(in crate::command) fn scan(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let cursor = cursor(&args[1])?;
    let options = Options::parse(&args[2..], true)?;
    let step = options.step(cursor, ctx.store.len(ctx.db), false);
    let places = step.places.rev();
    let keys: Vec<_> = places
        .filter_map(|place| ctx.store.key_at(ctx.db, place).cloned())
        .collect();
    let found = keys.into_iter().filter(|key| {
        options.takes(key)
            && ctx.value(key).is_some_and(|value| {
                options
                    .kind
                    .is_none_or(|wanted| is_word(wanted, value.kind()))
            })
    });
    let found = found.map(Reply::Bulk).collect();
    Ok(scan_reply(step.cursor, found))
}
