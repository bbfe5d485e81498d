//! XREAD and XREADGROUP.
//!
//! A blocked client is served by running its command again for the key that became ready ([`Ctx::woken_by`]),
//! whatever state the key is in then.

use bytes::Bytes;

use super::{
    deliver::{IN_XREADGROUP, Reader},
    entry_reply, ids, limit, no_group,
};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, refuse, syntax_error},
        decimal, word,
    },
    store::{Stream, StreamId, Value},
};

/// Greatest number of entries for a blocked client that gave no COUNT, because it may be far behind.
const WAITED_COUNT: usize = 1000;

pub(in crate::command) fn xread(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    read(ctx, args, false)
}

pub(in crate::command) fn xreadgroup(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    read(ctx, args, true)
}

fn read(ctx: &mut Ctx<'_>, args: &[Bytes], in_group: bool) -> Outcome {
    let request = Request::parse(args, in_group, ctx)?;
    if let Some(key) = ctx.woken_by.clone() {
        return request.serve_woken(ctx, &key);
    }
    let after = request.resolve(ctx)?;
    let mut found = Vec::new();
    for (key, after) in request.keys.iter().zip(&after) {
        if let Some(entries) = request.serve(ctx, key, *after)? {
            found.push((Reply::Bulk(key.clone()), entries));
        }
    }
    if !found.is_empty() {
        return Ok(by_key(ctx, found));
    }
    match request.timeout_ms {
        None => Ok(Reply::NilArray),
        Some(timeout_ms) => Err(Stop::Wait {
            keys: request.keys.to_vec(),
            timeout_ms,
            otherwise: Reply::NilArray,
            again: Some(request.again(args, &after)),
        }),
    }
}

/// Returns entries by key.
fn by_key(ctx: &Ctx<'_>, found: Vec<(Reply, Reply)>) -> Reply {
    if ctx.resp3 {
        return Reply::Map(found);
    }
    let pairs = found.into_iter().map(|(key, entries)| vec![key, entries]);
    Reply::Array(pairs.map(Reply::Array).collect())
}

/// Arguments of XREAD and XREADGROUP.
struct Request<'a> {
    keys: &'a [Bytes],
    /// Ids after which to read, one for each key, unparsed.
    after: &'a [Bytes],
    /// Number of entries of each key; 0 means all.
    count: usize,
    /// Timeout: 0 means no limit, `None` means not to block.
    timeout_ms: Option<u64>,
    reader: Option<Reader<'a>>,
}

impl<'a> Request<'a> {
    fn parse(args: &'a [Bytes], in_group: bool, ctx: &Ctx<'_>) -> Result<Self, Stop> {
        let (mut count, mut timeout_ms, mut noack, mut group) = (0, None, false, None);
        let mut rest = &args[1..];
        let streams = loop {
            let (option, tail) = rest.split_first().ok_or_else(syntax_error)?;
            rest = match tail {
                [_, ..] if is_word(option, "BLOCK") && ctx.in_script => {
                    return Err(blocks_in_script(args));
                }
                [timeout, tail @ ..] if is_word(option, "BLOCK") => {
                    timeout_ms = Some(timeout_of(timeout, ctx)?);
                    tail
                }
                [value, tail @ ..] if is_word(option, "COUNT") => {
                    count = usize::try_from(int(value)?).unwrap_or(0);
                    tail
                }
                [_, ..] if is_word(option, "STREAMS") => break tail,
                [name, consumer, tail @ ..] if is_word(option, "GROUP") => {
                    only_in_group(in_group, "GROUP")?;
                    group = Some((name, consumer));
                    tail
                }
                _ if is_word(option, "NOACK") => {
                    only_in_group(in_group, "NOACK")?;
                    noack = true;
                    tail
                }
                _ => return Err(syntax_error()),
            };
        };
        if streams.len() % 2 == 1 {
            return Err(refuse(
                "Unbalanced XREAD list of streams: for each stream key an ID or '$' must be \
                 specified.",
            ));
        }
        if in_group && group.is_none() {
            return Err(refuse("Missing GROUP option for XREADGROUP"));
        }
        let (keys, after) = streams.split_at(streams.len() / 2);
        let reader = group.map(|(group, consumer)| Reader {
            group,
            consumer,
            noack,
        });
        Ok(Self {
            keys,
            after,
            count,
            timeout_ms,
            reader,
        })
    }

    /// Returns the ids after which to read each key; for new entries in a group, the greatest id.
    fn resolve(&self, ctx: &mut Ctx<'_>) -> Result<Vec<StreamId>, Stop> {
        let mut resolved = Vec::with_capacity(self.keys.len());
        for (key, after) in self.keys.iter().zip(self.after) {
            let stream = ctx.get::<Stream>(key)?;
            if let Some(reader) = &self.reader {
                let group = stream.and_then(|stream| stream.group(reader.group));
                group.ok_or_else(|| no_group(key, reader.group, IN_XREADGROUP))?;
            }
            resolved.push(match (is_word(after, "$"), is_word(after, ">")) {
                (true, _) if self.reader.is_some() => return Err(end_in_group()),
                (true, _) => stream.map_or(StreamId::MIN, |stream| stream.marks().last),
                (_, true) if self.reader.is_none() => {
                    return Err(refuse(
                        "The > ID can be specified only when calling XREADGROUP using the GROUP \
                         <group> <consumer> option.",
                    ));
                }
                (_, true) => StreamId::MAX,
                _ => ids::id(after)?,
            });
        }
        Ok(resolved)
    }

    /// Returns the entries of a key; `None` if there are none.
    fn serve(
        &self,
        ctx: &mut Ctx<'_>,
        key: &Bytes,
        after: StreamId,
    ) -> Result<Option<Reply>, Stop> {
        let Some(stream) = ctx.get::<Stream>(key)? else {
            return Ok(None);
        };
        let last = stream.entries().last_id();
        let Some(reader) = self.reader else {
            let entries = last
                .filter(|last| *last > after)
                .map(|_| self.entries(stream, after));
            return Ok(entries);
        };
        if after != StreamId::MAX {
            return reader.history(ctx, key, after, self.count).map(Some);
        }
        let group = stream.group(reader.group);
        let read = group.map(|group| group.last);
        if last.zip(read).is_none_or(|(last, read)| last <= read) {
            return Ok(None);
        }
        reader.deliver(ctx, key, self.count).map(Some)
    }

    fn entries(&self, stream: &Stream, after: StreamId) -> Reply {
        let start = after.next().unwrap_or_default();
        let entries = stream.entries().range(start, StreamId::MAX);
        Reply::Array(entries.take(limit(self.count)).map(entry_reply).collect())
    }

    /// Serves a blocked client. A delivered id is returned even if the entry is gone.
    fn serve_woken(&self, ctx: &mut Ctx<'_>, key: &Bytes) -> Outcome {
        let waits_on = Stop::Wait {
            keys: Vec::new(),
            timeout_ms: 0,
            otherwise: Reply::NilArray,
            again: None,
        };
        let place = self.keys.iter().position(|other| other == key);
        let Some(Value::Stream(stream)) = ctx.value(key) else {
            return Err(match self.reader {
                None => waits_on,
                Some(_) => gone("UNBLOCKED the stream key no longer exists"),
            });
        };
        let after = match self.reader {
            None => ids::id(place.map_or(&b""[..], |place| &self.after[place]))?,
            Some(reader) => match stream.group(reader.group) {
                Some(group) => group.last,
                None => {
                    return Err(gone(
                        "NOGROUP the consumer group this client was blocked on no longer exists",
                    ));
                }
            },
        };
        if stream.marks().last <= after {
            return Err(waits_on);
        }
        let entries = match self.reader {
            None => self.entries(stream, after),
            Some(reader) => reader.deliver(ctx, key, self.count)?,
        };
        Ok(by_key(ctx, vec![(Reply::Bulk(key.clone()), entries)]))
    }

    /// Returns the command to run when one of the keys is ready: with ids instead of `$`.
    fn again(&self, args: &[Bytes], after: &[StreamId]) -> Vec<Bytes> {
        let mut again = vec![args[0].clone()];
        if let Some(reader) = self.reader {
            again.extend([word("GROUP"), reader.group.clone(), reader.consumer.clone()]);
            again.extend(reader.noack.then(|| word("NOACK")));
        }
        let count = if self.count == 0 {
            WAITED_COUNT
        } else {
            self.count
        };
        again.extend([word("COUNT"), decimal(count), word("STREAMS")]);
        again.extend_from_slice(self.keys);
        match self.reader {
            None => again.extend(after.iter().map(|id| id.text())),
            Some(_) => again.extend_from_slice(self.after),
        }
        again
    }
}

fn gone(text: &str) -> Stop {
    Stop::Error(text.to_owned())
}

/// Parses a timeout in milliseconds; 0 means no limit.
fn timeout_of(arg: &[u8], ctx: &Ctx<'_>) -> Result<u64, Stop> {
    let timeout = int(arg).map_err(|_| refuse("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(timeout).map_err(|_| refuse("timeout is negative"))?;
    // For Redis, a deadline beyond the integers is in the past: the wait ends at once.
    let reachable = i64::try_from(ctx.now_ms.saturating_add(ms)).is_ok();
    Ok(if ms == 0 || reachable { ms } else { 1 })
}

fn blocks_in_script(args: &[Bytes]) -> Stop {
    let name = String::from_utf8_lossy(&args[0]);
    refuse(format_args!(
        "{name} command is not allowed with BLOCK option from scripts"
    ))
}

fn only_in_group(in_group: bool, option: &str) -> Result<(), Stop> {
    if in_group {
        return Ok(());
    }
    Err(refuse(format_args!(
        "The {option} option is only supported by XREADGROUP. You called XREAD instead."
    )))
}

fn end_in_group() -> Stop {
    refuse(
        "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
         this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID \
         would just return an empty result set.",
    )
}
