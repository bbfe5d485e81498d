//! Adding and removing members.

use bytes::Bytes;

use crate::{
    Reply,
    command::{Ctx, Outcome, Stop, args::wrong_type},
    store::Set,
};

pub(in crate::command) fn sadd(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let set = ctx.get_or_make::<Set>(key)?;
    let added = args[2..].iter().filter(|member| set.insert(member)).count();
    if added > 0 {
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(added))
}

pub(in crate::command) fn srem(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let Some(set) = ctx.get_mut::<Set>(key)? else {
        return Ok(Reply::Int(0));
    };
    let removed = args[2..].iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(removed))
}

pub(in crate::command) fn smove(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (from, to, member) = (&args[1], &args[2], &args[3]);
    ctx.expire(to);
    let target: Result<Option<&Set>, Stop> = ctx.peek(to);
    let target_fits = target.is_ok();
    let Some(source) = ctx.get::<Set>(from)? else {
        return Ok(Reply::Int(0));
    };
    let found = source.contains(member);
    if !target_fits {
        return Err(wrong_type());
    }
    if from == to || !found {
        return Ok(Reply::Int(i64::from(found)));
    }
    if let Some(source) = ctx.get_mut::<Set>(from)? {
        source.remove(member);
    }
    ctx.drop_if_empty(from);
    let added = ctx.get_or_make::<Set>(to)?.insert(member);
    // If the member existed already, the other set has not changed.
    let changed = [from, to].into_iter().take(if added { 2 } else { 1 });
    ctx.wrote(changed, args.to_vec());
    Ok(Reply::Int(1))
}
