//! Random members.

use bytes::Bytes;
use rand::seq::index;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{count, int, refuse, syntax_error},
        word,
    },
    store::Set,
};

/// Greatest number of members that SRANDMEMBER returns with repetitions. Redis has no limit here, and uses all
/// memory.
const MAX_REPEATED: u64 = 10_000_000;

pub(in crate::command) fn spop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    match args {
        [_, key] => pop_one(ctx, key),
        [_, key, count] => {
            let count = self::count(count)?;
            pop_many(ctx, key, count)
        }
        _ => Err(syntax_error()),
    }
}

fn pop_one(ctx: &mut Ctx<'_>, key: &Bytes) -> Outcome {
    let Some(set) = ctx.get_mut::<Set>(key)? else {
        return Ok(Reply::Nil);
    };
    let Some(member) = set.remove_at(rand::random_range(0..set.len())) else {
        return Ok(Reply::Nil);
    };
    ctx.drop_if_empty(key);
    ctx.wrote([key], vec![word("SREM"), key.clone(), member.clone()]);
    Ok(Reply::Bulk(member))
}

fn pop_many(ctx: &mut Ctx<'_>, key: &Bytes, count: usize) -> Outcome {
    let Some(set) = ctx.get_mut::<Set>(key)? else {
        return Ok(Reply::Set(Vec::new()));
    };
    let (count, mut popped) = (count.min(set.len()), Vec::new());
    while popped.len() < count {
        popped.extend(set.remove_at(rand::random_range(0..set.len())));
    }
    let emptied = set.is_empty();
    if !popped.is_empty() {
        ctx.drop_if_empty(key);
        let mut command = vec![word(if emptied { "DEL" } else { "SREM" }), key.clone()];
        if !emptied {
            command.extend(popped.iter().cloned());
        }
        ctx.wrote([key], command);
    }
    Ok(Reply::Set(popped.into_iter().map(Reply::Bulk).collect()))
}

pub(in crate::command) fn srandmember(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let count = match args {
        [_, _] => None,
        [_, _, count] => Some(signed_count(count)?),
        _ => return Err(syntax_error()),
    };
    let set = ctx.get::<Set>(&args[1])?;
    let pick = |set: &Set| {
        set.at(rand::random_range(0..set.len()))
            .cloned()
            .map(Reply::Bulk)
    };
    let Some(count) = count else {
        return Ok(set.and_then(pick).unwrap_or(Reply::Nil));
    };
    let Some(set) = set else {
        return Ok(Reply::Array(Vec::new()));
    };
    if count < 0 {
        if count.unsigned_abs() > MAX_REPEATED {
            return Err(refuse("value is out of range"));
        }
        return Ok(Reply::Array((count..0).filter_map(|_| pick(set)).collect()));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(set.len());
    let places = index::sample(&mut rand::rng(), set.len(), count);
    let members = places.into_iter().filter_map(|place| set.at(place));
    Ok(Reply::Array(members.cloned().map(Reply::Bulk).collect()))
}

/// A count that may be negative.
fn signed_count(arg: &[u8]) -> Result<i64, crate::command::Stop> {
    let count = int(arg)?;
    if count == i64::MIN {
        let (min, max) = (-i64::MAX, i64::MAX);
        return Err(refuse(format_args!(
            "value is out of range, value must between {min} and {max}"
        )));
    }
    Ok(count)
}
