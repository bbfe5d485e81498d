//! Changing lists other than at their ends.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{int, is_word, no_such_key, place, places, refuse, syntax_error},
    },
    store::List,
};

pub(in crate::command) fn linsert(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, pivot) = (&args[1], &args[3]);
    let after = match &args[2] {
        position if is_word(position, "AFTER") => 1,
        position if is_word(position, "BEFORE") => 0,
        _ => return Err(syntax_error()),
    };
    let Some(list) = ctx.get_mut::<List>(key)? else {
        return Ok(Reply::Int(0));
    };
    let Some(place) = list.iter().position(|element| element == pivot) else {
        return Ok(Reply::Int(-1));
    };
    list.insert(place + after, args[4].clone());
    let len = list.len();
    ctx.wrote([key], args.to_vec());
    Ok(Reply::count(len))
}

pub(in crate::command) fn lset(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let list = ctx.get_mut::<List>(key)?.ok_or_else(no_such_key)?;
    let slot = place(int(&args[2])?, list.len()).and_then(|place| list.get_mut(place));
    *slot.ok_or_else(|| refuse("index out of range"))? = args[3].clone();
    ctx.wrote([key], args.to_vec());
    Ok(Reply::ok())
}

pub(in crate::command) fn lrem(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, element) = (&args[1], &args[3]);
    let count = int(&args[2])?;
    let Some(list) = ctx.get_mut::<List>(key)? else {
        return Ok(Reply::Int(0));
    };
    let limit = if count == 0 {
        u64::MAX
    } else {
        count.unsigned_abs()
    };
    let removed = remove(list, element, limit, count < 0);
    if removed > 0 {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(removed))
}

/// Removes up to `limit` occurrences, from the left or from the right.
fn remove(list: &mut List, element: &Bytes, limit: u64, from_right: bool) -> usize {
    let is_it = |other: &Bytes| other == element;
    if limit == 1 {
        // The usual case needs no scan of the whole list.
        let place = if from_right {
            list.iter().rposition(is_it)
        } else {
            list.iter().position(is_it)
        };
        return usize::from(place.and_then(|place| list.remove(place)).is_some());
    }
    let found = list.iter().filter(|other| is_it(other)).count();
    let remove = found.min(usize::try_from(limit).unwrap_or(usize::MAX));
    let spared = if from_right { found - remove } else { 0 };
    let mut met = 0;
    list.retain(|other| {
        if !is_it(other) {
            return true;
        }
        met += 1;
        met <= spared || met > spared + remove
    });
    remove
}

pub(in crate::command) fn ltrim(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let (start, stop) = (int(&args[2])?, int(&args[3])?);
    let Some(list) = ctx.get_mut::<List>(key)? else {
        return Ok(Reply::ok());
    };
    let before = list.len();
    let kept = places(start, stop, before).unwrap_or(0..0);
    list.truncate(kept.end);
    list.drain(..kept.start);
    if list.len() < before {
        ctx.drop_if_empty(key);
        ctx.wrote([key], args.to_vec());
    } else {
        // For WATCH it counts as a change.
        ctx.store.touch(ctx.db, key);
    }
    Ok(Reply::ok())
}
