//! Reading sets.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::cursor,
        scan::{Options, scan_reply},
    },
    store::Set,
};

pub(in crate::command) fn smembers(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let members = ctx.get::<Set>(&args[1])?.into_iter().flat_map(Set::iter);
    Ok(Reply::Set(members.cloned().map(Reply::Bulk).collect()))
}

pub(in crate::command) fn sismember(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let set = ctx.get::<Set>(&args[1])?;
    Ok(Reply::Int(i64::from(
        set.is_some_and(|set| set.contains(&args[2])),
    )))
}

pub(in crate::command) fn smismember(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let set = ctx.get::<Set>(&args[1])?;
    let found = args[2..]
        .iter()
        .map(|member| set.is_some_and(|set| set.contains(member)));
    Ok(Reply::Array(
        found.map(|found| Reply::Int(i64::from(found))).collect(),
    ))
}

pub(in crate::command) fn scard(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(ctx.get::<Set>(&args[1])?.map_or(0, Set::len)))
}

pub(in crate::command) fn sscan(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let cursor = cursor(&args[2])?;
    let Some(set) = ctx.get::<Set>(&args[1])? else {
        return Ok(scan_reply(0, Vec::new()));
    };
    let options = Options::parse(&args[3..], false)?;
    let step = options.step(cursor, set.len(), set.is_compact());
    let members = step.places.rev().filter_map(|place| set.at(place));
    let found = members.filter(|member| options.takes(member));
    Ok(scan_reply(
        step.cursor,
        found.cloned().map(Reply::Bulk).collect(),
    ))
}
