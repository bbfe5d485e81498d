//! Moving elements from list to list.

use bytes::Bytes;

use super::End;
use crate::{
    Reply,
    command::{Ctx, Outcome, Stop, word},
    store::List,
};

pub(in crate::command) fn lmove(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let ends = (End::parse(&args[3])?, End::parse(&args[4])?);
    Ok(transfer(ctx, &args[1], &args[2], ends)?.map_or(Reply::Nil, Reply::Bulk))
}

pub(in crate::command) fn rpoplpush(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let ends = (End::Right, End::Left);
    Ok(transfer(ctx, &args[1], &args[2], ends)?.map_or(Reply::Nil, Reply::Bulk))
}

/// Moves one element; `None` if there is no source list.
pub(super) fn transfer(
    ctx: &mut Ctx<'_>,
    from: &Bytes,
    to: &Bytes,
    (pop_end, push_end): (End, End),
) -> Result<Option<Bytes>, Stop> {
    if ctx.get::<List>(from)?.is_none() {
        return Ok(None);
    }
    // The type of the destination is checked before an element is removed.
    ctx.get::<List>(to)?;
    let Some(element) = ctx
        .get_mut::<List>(from)?
        .and_then(|list| pop_end.pop(list))
    else {
        return Ok(None);
    };
    push_end.push(ctx.get_or_make::<List>(to)?, element.clone());
    ctx.drop_if_empty(from);
    let command = vec![
        word("LMOVE"),
        from.clone(),
        to.clone(),
        word(pop_end.name()),
        word(push_end.name()),
    ];
    ctx.wrote([from, to], command);
    Ok(Some(element))
}
