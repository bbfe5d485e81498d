//! XPENDING: lists delivered entries that are not acknowledged.

use bytes::Bytes;

use super::{id_reply, ids, no_group};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, syntax_error},
    },
    store::{Group, Pending, Stream, StreamId},
};

/// Selection of pending entries.
struct Wanted<'a> {
    from: StreamId,
    to: StreamId,
    count: usize,
    /// Least time since the delivery in milliseconds, unless it is 0.
    idle: i64,
    consumer: Option<&'a Bytes>,
}

impl<'a> Wanted<'a> {
    /// Parses `[IDLE ms] start end count [consumer]`.
    fn parse(args: &'a [Bytes]) -> Result<Self, Stop> {
        let (idle, args) = match args {
            [word, idle, rest @ ..] if is_word(word, "IDLE") => (int(idle)?, rest),
            _ => (0, args),
        };
        let [from, to, count, rest @ ..] = args else {
            return Err(syntax_error());
        };
        let count = usize::try_from(int(count)?).unwrap_or(0);
        let (from, to) = (ids::start(from)?, ids::end(to)?);
        Ok(Self {
            from,
            to,
            count,
            idle,
            consumer: rest.first(),
        })
    }

    fn takes(&self, pending: &Pending, now: i64) -> bool {
        self.idle == 0 || now.wrapping_sub(pending.delivered) >= self.idle
    }

    fn reply(&self, group: &Group, now: i64) -> Reply {
        let range = self.from..=self.to;
        if self.from > self.to {
            return Reply::Array(Vec::new());
        }
        let all = group.pending();
        let found: Box<dyn Iterator<Item = (&StreamId, &Pending)>> = match self.consumer {
            None => Box::new(all.range(range)),
            Some(name) => match group.consumers().get(name) {
                None => return Reply::Array(Vec::new()),
                Some(consumer) => {
                    let ids = consumer.pending().range(range);
                    Box::new(ids.filter_map(|id| all.get_key_value(id)))
                }
            },
        };
        let found = found.filter(|(_, pending)| self.takes(pending, now));
        let reply = |(id, pending): (&StreamId, &Pending)| {
            Reply::Array(vec![
                id_reply(*id),
                Reply::Bulk(pending.consumer.clone()),
                Reply::Int(now.wrapping_sub(pending.delivered).max(0)),
                Reply::Int(pending.count),
            ])
        };
        Reply::Array(found.take(self.count).map(reply).collect())
    }
}

pub(in crate::command) fn xpending(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, name) = (&args[1], &args[2]);
    let wanted = match args.len() {
        3 => None,
        6..=9 => Some(Wanted::parse(&args[3..])?),
        _ => return Err(syntax_error()),
    };
    let now = ctx.clock();
    let stream = ctx.get::<Stream>(key)?;
    let group = stream.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_group(key, name, ""))?;
    Ok(match wanted {
        Some(wanted) => wanted.reply(group, now),
        None => summary(group),
    })
}

/// Returns the number of pending entries, their first and last id, and the number for each consumer.
fn summary(group: &Group) -> Reply {
    let pending = group.pending();
    let ends = pending.keys().next().zip(pending.keys().next_back());
    let Some((first, last)) = ends else {
        return Reply::Array(vec![Reply::Int(0), Reply::Nil, Reply::Nil, Reply::NilArray]);
    };
    let consumers = group.consumers().iter();
    let busy = consumers.filter(|(_, consumer)| !consumer.pending().is_empty());
    let busy = busy.map(|(name, consumer)| {
        let count = consumer.pending().len().to_string();
        Reply::Array(vec![Reply::Bulk(name.clone()), Reply::Bulk(count.into())])
    });
    Reply::Array(vec![
        Reply::count(pending.len()),
        id_reply(*first),
        id_reply(*last),
        Reply::Array(busy.collect()),
    ])
}
