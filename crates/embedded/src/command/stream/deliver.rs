//! Deliveries to a consumer of a group: new entries, or its own pending ones.

use bytes::Bytes;

use super::{
    claims::{Claims, Position, log_consumer, log_position},
    entry_reply, id_reply, limit, no_group,
};
use crate::{
    Reply,
    command::{Ctx, Stop},
    store::{Pending, Stream, StreamId},
};

/// A reader and its options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) group: &'a Bytes,
    pub(super) consumer: &'a Bytes,
    /// True if delivered entries count as acknowledged.
    pub(super) noack: bool,
}

/// Name of the command for errors about a missing group.
pub(super) const IN_XREADGROUP: &str = " in XREADGROUP with GROUP option";

impl Reader<'_> {
    /// Delivers entries that are new to the group, up to `count` (0: all).
    pub(super) fn deliver(
        &self,
        ctx: &mut Ctx<'_>,
        key: &Bytes,
        count: usize,
    ) -> Result<Reply, Stop> {
        let now = ctx.clock();
        let stream = ctx.get_mut::<Stream>(key)?;
        let (group, entries, marks) = stream
            .and_then(|stream| stream.group_mut(self.group))
            .ok_or_else(|| no_group(key, self.group, IN_XREADGROUP))?;
        let new_consumer = group.see(self.consumer, now);
        let before = group.last;
        let mut claims = Claims::default();
        let mut replies = Vec::new();
        let start = before.next().unwrap_or_default();
        for entry in entries.range(start, StreamId::MAX).take(limit(count)) {
            marks.advance(group, entry.id());
            if !self.noack {
                let pending = Pending {
                    consumer: self.consumer.clone(),
                    delivered: now,
                    count: 1,
                };
                group.assign(entry.id(), pending.clone());
                claims.add(entry.id(), pending);
            }
            replies.push(entry_reply(entry));
        }
        let position = Position::of(group);
        if new_consumer {
            log_consumer(ctx, key, self.group, self.consumer);
        }
        claims.log(ctx, key, self.group, position.last);
        if position.last != before {
            log_position(ctx, key, self.group, &position);
        }
        Ok(Reply::Array(replies))
    }

    /// Delivers the consumer's pending entries after an id again, up to `count` (0: all).
    ///
    /// Redis does not log this, so that its count of deliveries is lost at a restart. This engine logs it.
    pub(super) fn history(
        &self,
        ctx: &mut Ctx<'_>,
        key: &Bytes,
        after: StreamId,
        count: usize,
    ) -> Result<Reply, Stop> {
        let now = ctx.clock();
        let stream = ctx.get_mut::<Stream>(key)?;
        let (group, entries, _) = stream
            .and_then(|stream| stream.group_mut(self.group))
            .ok_or_else(|| no_group(key, self.group, IN_XREADGROUP))?;
        let new_consumer = group.see(self.consumer, now);
        let start = after.next().unwrap_or_default();
        let ids = group.consumers().get(self.consumer).into_iter();
        let ids = ids.flat_map(|consumer| consumer.pending().range(start..));
        let ids: Vec<StreamId> = ids.take(limit(count)).copied().collect();
        let mut claims = Claims::default();
        let mut replies = Vec::new();
        for id in ids {
            let Some(entry) = entries.get(id) else {
                replies.push(Reply::Array(vec![id_reply(id), Reply::NilArray]));
                continue;
            };
            let count = group.pending().get(&id).map_or(0, |pending| pending.count);
            let pending = Pending {
                consumer: self.consumer.clone(),
                delivered: now,
                count: count.wrapping_add(1),
            };
            group.assign(id, pending.clone());
            claims.add(id, pending);
            replies.push(entry_reply(entry));
        }
        let last = group.last;
        if new_consumer {
            log_consumer(ctx, key, self.group, self.consumer);
        }
        claims.log(ctx, key, self.group, last);
        Ok(Reply::Array(replies))
    }
}
