//! Reading hashes.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::cursor,
        scan::{Options, scan_reply},
    },
    store::Hash,
};

fn bulk(value: Option<Bytes>) -> Reply {
    value.map_or(Reply::Nil, Reply::Bulk)
}

pub(in crate::command) fn hget(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(bulk(
        ctx.get::<Hash>(&args[1])?
            .and_then(|hash| hash.get(&args[2])),
    ))
}

pub(in crate::command) fn hmget(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let hash = ctx.get::<Hash>(&args[1])?;
    let values = args[2..]
        .iter()
        .map(|field| bulk(hash.and_then(|hash| hash.get(field))));
    Ok(Reply::Array(values.collect()))
}

pub(in crate::command) fn hgetall(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let hash = ctx.get::<Hash>(&args[1])?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Map(
        pairs
            .map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value)))
            .collect(),
    ))
}

pub(in crate::command) fn hkeys(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let hash = ctx.get::<Hash>(&args[1])?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Array(
        pairs.map(|(field, _)| Reply::Bulk(field)).collect(),
    ))
}

pub(in crate::command) fn hvals(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let hash = ctx.get::<Hash>(&args[1])?;
    let pairs = hash.into_iter().flat_map(Hash::iter);
    Ok(Reply::Array(
        pairs.map(|(_, value)| Reply::Bulk(value)).collect(),
    ))
}

pub(in crate::command) fn hlen(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        ctx.get::<Hash>(&args[1])?.map_or(0, Hash::len),
    ))
}

pub(in crate::command) fn hexists(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let found = ctx
        .get::<Hash>(&args[1])?
        .is_some_and(|hash| hash.contains(&args[2]));
    Ok(Reply::Int(i64::from(found)))
}

pub(in crate::command) fn hstrlen(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let value = ctx
        .get::<Hash>(&args[1])?
        .and_then(|hash| hash.get(&args[2]));
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

pub(in crate::command) fn hscan(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let cursor = cursor(&args[2])?;
    let Some(hash) = ctx.get::<Hash>(&args[1])? else {
        return Ok(scan_reply(0, Vec::new()));
    };
    let options = Options::parse(&args[3..], false)?;
    let step = options.step(cursor, hash.len(), hash.is_compact());
    let pairs = hash.from(step.places.start).take(step.places.len());
    let found = pairs.filter(|(field, _)| options.takes(field));
    let items = found
        .flat_map(|(field, value)| [field, value])
        .map(Reply::Bulk);
    Ok(scan_reply(step.cursor, items.collect()))
}
