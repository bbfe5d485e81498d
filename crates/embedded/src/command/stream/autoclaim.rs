//! XAUTOCLAIM: moves old pending entries of other consumers to one consumer, in the order of ids.

use std::ops::Bound;

use bytes::Bytes;

use super::{claims::Claims, entry_reply, id_reply, ids, no_group};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, refuse, syntax_error},
    },
    resp::parse_integer,
    store::{Entries, Group, Pending, Stream, StreamId},
};

/// Default of COUNT.
const COUNT: i64 = 100;
/// Number of entries to examine for each one to claim.
const LOOKS: usize = 10;
/// Greatest COUNT, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

/// Arguments of XAUTOCLAIM.
struct Claim<'a> {
    consumer: &'a Bytes,
    min_idle: i64,
    start: StreamId,
    count: usize,
    just_id: bool,
}

/// Result of XAUTOCLAIM.
#[derive(Default)]
struct Outcomes {
    taken: Vec<Reply>,
    /// Pending entries that are no longer in the stream, and now not pending either.
    gone: Vec<Reply>,
    claims: Claims,
    /// Cursor; 0-0 after the last entry.
    next: StreamId,
}

impl<'a> Claim<'a> {
    /// Parses `consumer min-idle start [option …]`.
    fn parse(args: &'a [Bytes]) -> Result<Self, Stop> {
        let min_idle = parse_integer(&args[1])
            .ok_or_else(|| refuse("Invalid min-idle-time argument for XAUTOCLAIM"))?;
        let start = ids::start(&args[2])?;
        let (mut count, mut just_id) = (COUNT, false);
        let mut rest = &args[3..];
        while let [option, tail @ ..] = rest {
            rest = match tail {
                [value, tail @ ..] if is_word(option, "COUNT") => {
                    let value =
                        parse_integer(value).filter(|count| (1..=COUNT_MAX).contains(count));
                    count = value.ok_or_else(|| refuse("COUNT must be > 0"))?;
                    tail
                }
                _ if is_word(option, "JUSTID") => {
                    just_id = true;
                    tail
                }
                _ => return Err(syntax_error()),
            };
        }
        Ok(Self {
            consumer: &args[0],
            min_idle: min_idle.max(0),
            start,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            just_id,
        })
    }

    fn run(&self, group: &mut Group, entries: &Entries, now: i64) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let mut from = Bound::Included(self.start);
        let mut looks = self.count.saturating_mul(LOOKS);
        let mut left = self.count;
        loop {
            let next = group.pending().range((from, Bound::Unbounded)).next();
            let Some((id, pending)) = next.map(|(id, pending)| (*id, pending.clone())) else {
                return outcomes;
            };
            if looks == 0 || left == 0 {
                outcomes.next = id;
                return outcomes;
            }
            looks -= 1;
            from = Bound::Excluded(id);
            left -= usize::from(self.take(id, pending, group, entries, now, &mut outcomes));
        }
    }

    /// Claims one entry, unless it is too young. Returns whether it counts.
    fn take(
        &self,
        id: StreamId,
        mut pending: Pending,
        group: &mut Group,
        entries: &Entries,
        now: i64,
        outcomes: &mut Outcomes,
    ) -> bool {
        let Some(entry) = entries.get(id) else {
            group.release(id);
            outcomes.claims.add(id, pending);
            outcomes.gone.push(id_reply(id));
            return true;
        };
        if self.min_idle > 0 && now.wrapping_sub(pending.delivered) < self.min_idle {
            return false;
        }
        group.see(self.consumer, now);
        pending.consumer = self.consumer.clone();
        pending.delivered = now;
        pending.count = pending.count.wrapping_add(i64::from(!self.just_id));
        group.assign(id, pending.clone());
        outcomes.claims.add(id, pending);
        outcomes.taken.push(if self.just_id {
            id_reply(id)
        } else {
            entry_reply(entry)
        });
        true
    }
}

pub(in crate::command) fn xautoclaim(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, name) = (&args[1], &args[2]);
    let now = ctx.clock();
    let claim = Claim::parse(&args[3..])?;
    let stream = ctx.get_mut::<Stream>(key)?;
    let Some((group, entries, _)) = stream.and_then(|stream| stream.group_mut(name)) else {
        return Err(no_group(key, name, ""));
    };
    let outcomes = claim.run(group, entries, now);
    let last = group.last;
    outcomes.claims.log(ctx, key, name, last);
    Ok(Reply::Array(vec![
        id_reply(outcomes.next),
        Reply::Array(outcomes.taken),
        Reply::Array(outcomes.gone),
    ]))
}
