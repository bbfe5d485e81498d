//! Reading sorted sets.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::cursor,
        scan::{Options, scan_reply},
    },
    resp::double_text,
    store::Zset,
};

pub(in crate::command) fn zcard(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        ctx.get::<Zset>(&args[1])?.map_or(0, Zset::len),
    ))
}

pub(in crate::command) fn zscore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let score = ctx
        .get::<Zset>(&args[1])?
        .and_then(|zset| zset.score(&args[2]));
    Ok(score.map_or(Reply::Nil, Reply::Double))
}

pub(in crate::command) fn zmscore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let zset = ctx.get::<Zset>(&args[1])?;
    let scores = args[2..]
        .iter()
        .map(|member| zset.and_then(|zset| zset.score(member)));
    Ok(Reply::Array(
        scores
            .map(|score| score.map_or(Reply::Nil, Reply::Double))
            .collect(),
    ))
}

pub(in crate::command) fn zrank(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let rank = ctx
        .get::<Zset>(&args[1])?
        .and_then(|zset| zset.rank(&args[2]));
    Ok(rank.map_or(Reply::Nil, Reply::count))
}

pub(in crate::command) fn zrevrank(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let zset = ctx.get::<Zset>(&args[1])?;
    let rank = zset.and_then(|zset| Some(zset.len() - 1 - zset.rank(&args[2])?));
    Ok(rank.map_or(Reply::Nil, Reply::count))
}

pub(in crate::command) fn zscan(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let cursor = cursor(&args[2])?;
    let Some(zset) = ctx.get::<Zset>(&args[1])? else {
        return Ok(scan_reply(0, Vec::new()));
    };
    let options = Options::parse(&args[3..], false)?;
    let compact = zset.is_compact();
    let step = options.step(cursor, zset.len(), compact);
    let pair = |member: &Bytes, score| {
        let text = if compact {
            compact_text(score)
        } else {
            double_text(score)
        };
        options
            .takes(member)
            .then(|| [Reply::Bulk(member.clone()), Reply::Bulk(text.into())])
    };
    let items: Vec<_> = if compact {
        let ranked = zset.ranking().range(step.places);
        ranked
            .filter_map(|ranked| pair(&ranked.member, ranked.score))
            .flatten()
            .collect()
    } else {
        let members = step.places.rev().filter_map(|place| zset.at(place));
        members
            .filter_map(|(member, score)| pair(member, score))
            .flatten()
            .collect()
    };
    Ok(scan_reply(step.cursor, items))
}

/// Formats a score as Redis does in a small sorted set: integers never have an exponent.
fn compact_text(score: f64) -> String {
    /// Half of the greatest integer.
    const MAX: f64 = 4_611_686_018_427_387_904.0;
    if score != 0.0 && score.abs() <= MAX && score.fract() == 0.0 {
        return format!("{score:.0}");
    }
    double_text(score)
}
