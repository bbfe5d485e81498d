//! XADD: adding entries to the end of a stream.

use bytes::Bytes;

use super::{
    id_reply,
    ids::{NewId, new_id},
    trim::Trim,
};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, refuse, wrong_arity},
        word,
    },
    store::{Stream, StreamId},
};

/// Greatest length of an entry in bytes, as in Redis.
const ENTRY_MAX: usize = 1 << 30;

/// Arguments of XADD.
struct Addition<'a> {
    create: bool,
    trim: Option<Trim>,
    id: NewId,
    fields: &'a [Bytes],
}

impl<'a> Addition<'a> {
    fn parse(args: &'a [Bytes]) -> Result<Self, Stop> {
        let mut create = true;
        let mut trim = super::trim::Options::default();
        let mut rest = &args[2..];
        let id = loop {
            let Some((arg, tail)) = rest.split_first() else {
                return trim.finish().and(Err(wrong_arity(args)));
            };
            if arg[..] == *b"*" {
                rest = tail;
                break NewId::Auto;
            }
            if let Some(tail) = trim.take(rest)? {
                rest = tail;
                continue;
            }
            rest = tail;
            if is_word(arg, "NOMKSTREAM") {
                create = false;
                continue;
            }
            break new_id(arg)?;
        };
        let trim = trim.finish()?;
        if rest.is_empty() || rest.len() % 2 == 1 {
            return Err(wrong_arity(args));
        }
        if id == NewId::Given(StreamId::MIN) {
            return Err(refuse("The ID specified in XADD must be greater than 0-0"));
        }
        let fields = rest;
        Ok(Self {
            create,
            trim,
            id,
            fields,
        })
    }

    /// Returns the id of the entry after `last`.
    fn id_after(&self, last: StreamId, now_ms: u64) -> Result<StreamId, Stop> {
        if last == StreamId::MAX {
            return Err(refuse(
                "The stream has exhausted the last possible ID, unable to add more items",
            ));
        }
        let id = match self.id {
            NewId::Auto if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            NewId::Auto => last.next(),
            NewId::AutoIn(ms) if ms == last.ms => {
                let seq = last.seq.checked_add(1);
                seq.map(|seq| StreamId::new(ms, seq))
            }
            NewId::AutoIn(ms) => Some(StreamId::new(ms, 0)),
            NewId::Given(id) => Some(id),
        };
        id.filter(|id| *id > last).ok_or_else(|| {
            refuse("The ID specified in XADD is equal or smaller than the target stream top item")
        })
    }
}

pub(in crate::command) fn xadd(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let addition = Addition::parse(args)?;
    let found = ctx.get::<Stream>(key)?;
    if found.is_none() && !addition.create {
        return Ok(Reply::Nil);
    }
    let last = found.map_or(StreamId::MIN, |stream| stream.marks().last);
    let id = addition.id_after(last, ctx.clock_ms)?;
    let bytes: usize = addition.fields.iter().map(Bytes::len).sum();
    if bytes > ENTRY_MAX {
        return Err(refuse("Elements are too large to be stored"));
    }
    let stream = ctx.get_or_make::<Stream>(key)?;
    stream.append(id, addition.fields);
    let trimmed = addition.trim.and_then(|trim| trim.apply(stream));
    let mut command = vec![word("XADD"), key.clone()];
    command.extend(trimmed.into_iter().flat_map(|(_, exact)| exact));
    command.push(id.text());
    command.extend_from_slice(addition.fields);
    ctx.wrote([key], command);
    ctx.store.signal(ctx.db, key);
    Ok(id_reply(id))
}
