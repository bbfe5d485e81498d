//! MEMORY USAGE: an estimate of a key's memory.

use bytes::Bytes;

use super::{
    Ctx, Outcome,
    args::{int, is_word, syntax_error},
};
use crate::{
    Reply,
    store::{EntryRef, Ranked, Value},
};

/// Approximate number of bytes for a key beside its name and its content.
const KEY_OVERHEAD: usize = 96;

/// Approximate number of bytes for an item beside its content.
const ITEM_OVERHEAD: usize = 48;

/// Estimates the bytes of the names and the content, with their overhead.
pub(super) fn usage(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let mut options = args[3..].chunks(2);
    for option in options.by_ref() {
        match option {
            [word, samples] if is_word(word, "samples") => {
                if int(samples)? < 0 {
                    return Err(syntax_error());
                }
            }
            _ => return Err(syntax_error()),
        }
    }
    ctx.expire(&args[2]);
    let Some(value) = ctx.store.get(ctx.db, &args[2]) else {
        return Ok(Reply::Nil);
    };
    let items = |bytes: usize, items: usize| bytes + items * ITEM_OVERHEAD;
    let content = match value {
        Value::Str(text) => text.len(),
        Value::List(list) => items(list.iter().map(Bytes::len).sum(), list.len()),
        Value::Set(set) => items(set.iter().map(Bytes::len).sum(), set.len()),
        Value::Hash(hash) => items(
            hash.iter()
                .map(|(field, value)| field.len() + value.len())
                .sum(),
            hash.len() * 2,
        ),
        Value::Stream(stream) => {
            let entries = stream.entries().all();
            let bytes = |entry: EntryRef<'_>| entry.fields().iter().map(Bytes::len).sum::<usize>();
            items(entries.map(bytes).sum(), stream.len())
        }
        Value::Zset(zset) => {
            let ranking = zset.ranking();
            let bytes = ranking
                .range(0..zset.len())
                .map(|Ranked { member, .. }| member.len());
            items(bytes.sum(), zset.len() * 2)
        }
    };
    Ok(Reply::count(KEY_OVERHEAD + args[2].len() + content))
}
