//! Intersection, union and difference of sets.

use bytes::Bytes;
use indexmap::IndexSet;

use crate::{
    Reply,
    command::{Ctx, Outcome, Stop},
    store::Set,
};

/// Returns the sets of some keys; all must be sets if they exist.
fn sets<'a>(ctx: &'a mut Ctx<'_>, keys: &[Bytes]) -> Result<Vec<Option<&'a Set>>, Stop> {
    for key in keys {
        ctx.expire(key);
    }
    let ctx = &*ctx;
    keys.iter().map(|key| ctx.peek(key)).collect()
}

fn reply<'a>(members: impl IntoIterator<Item = &'a Bytes>) -> Outcome {
    Ok(Reply::Set(
        members.into_iter().cloned().map(Reply::Bulk).collect(),
    ))
}

pub(in crate::command) fn sinter(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let sets = sets(ctx, &args[1..])?;
    let Some(sets) = sets.into_iter().collect::<Option<Vec<_>>>() else {
        return reply([]);
    };
    let smallest = sets.iter().min_by_key(|set| set.len());
    let members = smallest.into_iter().flat_map(|set| set.iter());
    reply(members.filter(|member| sets.iter().all(|set| set.contains(member))))
}

pub(in crate::command) fn sunion(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let sets = sets(ctx, &args[1..])?.into_iter().flatten();
    reply(sets.flat_map(Set::iter).collect::<IndexSet<_>>())
}

pub(in crate::command) fn sdiff(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let sets = sets(ctx, &args[1..])?;
    let (first, others) = (sets[0], &sets[1..]);
    let members = first.into_iter().flat_map(Set::iter);
    reply(members.filter(|member| !others.iter().flatten().any(|set| set.contains(member))))
}
