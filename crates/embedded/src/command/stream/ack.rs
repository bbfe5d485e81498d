//! XACK: acknowledged entries are no longer pending.

use bytes::Bytes;

use super::ids;
use crate::{
    Reply,
    command::{Ctx, Outcome},
    store::Stream,
};

pub(in crate::command) fn xack(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, group) = (&args[1], &args[2]);
    let stream = ctx.get::<Stream>(key)?;
    if stream.and_then(|stream| stream.group(group)).is_none() {
        return Ok(Reply::Int(0));
    }
    let ids = ids::all(&args[3..])?;
    let stream = ctx.get_mut::<Stream>(key)?;
    let acknowledged =
        stream
            .and_then(|stream| stream.group_mut(group))
            .map_or(0, |(group, ..)| {
                let released = ids.iter().filter_map(|id| group.release(*id));
                released.count()
            });
    if acknowledged > 0 {
        ctx.wrote([], args.to_vec());
    }
    Ok(Reply::count(acknowledged))
}
