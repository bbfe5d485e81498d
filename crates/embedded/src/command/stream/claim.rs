//! XCLAIM: moves pending entries with given ids to another consumer.

use bytes::Bytes;

use super::{
    claims::{Claims, Position, log_position},
    entry_reply, id_reply, ids, no_group, shown,
};
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, refuse},
    },
    resp::parse_integer,
    store::{Entries, Group, Pending, Stream, StreamId},
};

/// Arguments of XCLAIM.
struct Claim<'a> {
    consumer: &'a Bytes,
    /// Least time since the delivery, in milliseconds; 0 means any.
    min_idle: i64,
    ids: Vec<StreamId>,
    /// Time of delivery to record.
    delivered: i64,
    count: Option<i64>,
    /// True to claim entries that are not pending, too.
    force: bool,
    just_id: bool,
    /// Last id delivered to the group.
    last: StreamId,
}

impl<'a> Claim<'a> {
    /// Parses `consumer min-idle id … [option …]`.
    fn parse(args: &'a [Bytes], now: i64) -> Result<Self, Stop> {
        let mut claim = Self {
            consumer: &args[0],
            min_idle: number(&args[1], "min-idle-time")?.max(0),
            ids: args[2..].iter().map_while(|arg| ids::try_id(arg)).collect(),
            delivered: -1,
            count: None,
            force: false,
            just_id: false,
            last: StreamId::MIN,
        };
        let mut rest = &args[2 + claim.ids.len()..];
        while let [option, tail @ ..] = rest {
            rest = claim.option(option, tail, now)?;
        }
        // An impossible time becomes the present.
        if claim.delivered < 0 || claim.delivered > now {
            claim.delivered = now;
        }
        Ok(claim)
    }

    /// Parses one option, and returns the arguments after it.
    fn option<'t>(
        &mut self,
        option: &Bytes,
        tail: &'t [Bytes],
        now: i64,
    ) -> Result<&'t [Bytes], Stop> {
        let flag = match option {
            _ if is_word(option, "FORCE") => Some(&mut self.force),
            _ if is_word(option, "JUSTID") => Some(&mut self.just_id),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            return Ok(tail);
        }
        let unknown = || {
            let option = shown(option);
            refuse(format_args!("Unrecognized XCLAIM option '{option}'"))
        };
        let (value, rest) = tail.split_first().ok_or_else(unknown)?;
        if is_word(option, "IDLE") {
            self.delivered = now.wrapping_sub(number(value, "IDLE option")?);
        } else if is_word(option, "TIME") {
            self.delivered = number(value, "TIME option")?;
        } else if is_word(option, "RETRYCOUNT") {
            let count = number(value, "RETRYCOUNT option")?;
            self.count = Some(count).filter(|count| *count >= 0);
        } else if is_word(option, "LASTID") {
            self.last = ids::id(value)?;
        } else {
            return Err(unknown());
        }
        Ok(rest)
    }

    /// Claims one entry, and returns its reply if it was claimed.
    fn take(
        &self,
        id: StreamId,
        group: &mut Group,
        entries: &Entries,
        now: i64,
        claims: &mut Claims,
    ) -> Option<Reply> {
        let Some(entry) = entries.get(id) else {
            if let Some(pending) = group.release(id) {
                claims.add(id, pending);
            }
            return None;
        };
        let before = match group.pending().get(&id) {
            Some(pending) => {
                let idle = now.wrapping_sub(pending.delivered);
                if self.min_idle > 0 && idle < self.min_idle {
                    return None;
                }
                pending.count
            }
            None if self.force => 1,
            None => return None,
        };
        group.see(self.consumer, now);
        let next = before.wrapping_add(i64::from(!self.just_id));
        let pending = Pending {
            consumer: self.consumer.clone(),
            delivered: self.delivered,
            count: self.count.unwrap_or(next),
        };
        group.assign(id, pending.clone());
        claims.add(id, pending);
        Some(if self.just_id {
            id_reply(id)
        } else {
            entry_reply(entry)
        })
    }
}

/// Parses a number of milliseconds or of deliveries.
pub(super) fn number(arg: &[u8], of: &str) -> Result<i64, Stop> {
    parse_integer(arg).ok_or_else(|| refuse(format_args!("Invalid {of} argument for XCLAIM")))
}

pub(in crate::command) fn xclaim(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (key, name) = (&args[1], &args[2]);
    let now = ctx.clock();
    let stream = ctx.get::<Stream>(key)?;
    if stream.and_then(|stream| stream.group(name)).is_none() {
        return Err(no_group(key, name, ""));
    }
    let claim = Claim::parse(&args[3..], now)?;
    let stream = ctx.get_mut::<Stream>(key)?;
    let Some((group, entries, _)) = stream.and_then(|stream| stream.group_mut(name)) else {
        return Err(no_group(key, name, ""));
    };
    let advanced = claim.last > group.last;
    group.last = group.last.max(claim.last);
    let mut claims = Claims::default();
    let ids = claim.ids.iter();
    let taken = ids.filter_map(|id| claim.take(*id, group, entries, now, &mut claims));
    let taken = taken.collect();
    let position = Position::of(group);
    let claimed = !claims.is_empty();
    claims.log(ctx, key, name, position.last);
    if advanced && !claimed {
        log_position(ctx, key, name, &position);
    }
    Ok(Reply::Array(taken))
}
