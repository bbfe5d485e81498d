//! Changing parts of strings.

use bytes::{Bytes, BytesMut};

use crate::{
    Reply,
    command::{
        Ctx, Outcome,
        args::{MAX_STRING, int, refuse, string_too_long},
    },
    store::Value,
};

pub(in crate::command) fn append(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, tail) = (&args[1], &args[2]);
    let len = match ctx.get_mut::<Bytes>(key)? {
        Some(text) => {
            let len = text.len() + tail.len();
            if len > MAX_STRING {
                return Err(string_too_long());
            }
            let mut changed = into_mut(std::mem::take(text));
            changed.extend_from_slice(tail);
            *text = changed.freeze();
            len
        }
        None => {
            ctx.put(ctx.db, key, Value::Str(tail.clone()));
            tail.len()
        }
    };
    ctx.wrote([key], args.to_vec());
    Ok(Reply::count(len))
}

pub(in crate::command) fn setrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, part) = (&args[1], &args[3]);
    let start = usize::try_from(int(&args[2])?).map_err(|_| refuse("offset is out of range"))?;
    let before = ctx.get::<Bytes>(key)?.map_or(0, Bytes::len);
    if part.is_empty() {
        return Ok(Reply::count(before));
    }
    let end = start.saturating_add(part.len());
    if end > MAX_STRING {
        return Err(string_too_long());
    }
    let text = ctx.get_or_make::<Bytes>(key)?;
    let mut changed = into_mut(std::mem::take(text));
    changed.resize(changed.len().max(end), 0);
    changed[start..end].copy_from_slice(part);
    *text = changed.freeze();
    ctx.wrote([key], args.to_vec());
    Ok(Reply::count(before.max(end)))
}

/// Returns the text to change: in place if no pending reply shares it.
fn into_mut(text: Bytes) -> BytesMut {
    text.try_into_mut()
        .unwrap_or_else(|shared| BytesMut::from(&shared[..]))
}
