//! What goes into the log when entries become pending for a consumer.

use bytes::Bytes;

use crate::{
    command::{Ctx, word},
    store::{Group, Pending, StreamId, claim_command},
};

/// Ids in one XCLAIM: no command is long.
const IDS: usize = 64;

/// Entries whose state changed, as few commands as say so: Redis writes one for each entry.
#[derive(Debug, Default)]
pub(super) struct Claims {
    runs: Vec<(Pending, Vec<StreamId>)>,
}

impl Claims {
    /// Notes what an entry is now; of one that is gone, what it was: the XCLAIM finds no entry,
    /// and takes it off.
    pub(super) fn add(&mut self, id: StreamId, pending: Pending) {
        match self.runs.last_mut() {
            Some((last, ids)) if *last == pending && ids.len() < IDS => ids.push(id),
            _ => self.runs.push((pending, vec![id])),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Logs it, with the last entry that the group was given.
    pub(super) fn log(self, ctx: &mut Ctx<'_>, key: &Bytes, group: &Bytes, last: StreamId) {
        for (pending, ids) in &self.runs {
            let command = claim_command(key, group, ids, pending);
            let command = command.chain([word("LASTID"), last.text()]).collect();
            ctx.wrote([], command);
        }
    }
}

/// Logs how far a group has read: XCLAIM does not tell how many entries that were.
pub(super) fn log_position(ctx: &mut Ctx<'_>, key: &Bytes, name: &Bytes, group: &Position) {
    let command = vec![
        word("XGROUP"),
        word("SETID"),
        key.clone(),
        name.clone(),
        group.last.text(),
        word("ENTRIESREAD"),
        group.read.clone(),
    ];
    ctx.wrote([], command);
}

/// How far a group has read.
pub(super) struct Position {
    pub(super) last: StreamId,
    read: Bytes,
}

impl Position {
    pub(super) fn of(group: &Group) -> Self {
        Self {
            last: group.last,
            read: group.read_text(),
        }
    }
}

/// Logs that a consumer came to be.
pub(super) fn log_consumer(ctx: &mut Ctx<'_>, key: &Bytes, group: &Bytes, consumer: &Bytes) {
    let head = [word("XGROUP"), word("CREATECONSUMER"), key.clone()];
    let names = [group.clone(), consumer.clone()];
    ctx.wrote([], head.into_iter().chain(names).collect());
}
