//! Log entries for entries that become pending for a consumer.

use bytes::Bytes;

use crate::{
    command::{Ctx, word},
    store::{Group, Pending, StreamId, claim_command},
};

/// Greatest number of ids in one XCLAIM, which keeps commands short.
const IDS: usize = 64;

/// Entries whose state changed, in as few commands as possible; Redis writes one for each entry.
#[derive(Debug, Default)]
pub(super) struct Claims {
    runs: Vec<(Pending, Vec<StreamId>)>,
}

impl Claims {
    /// Records the new state of an entry. For an entry that is gone, its old state is recorded: the replayed XCLAIM
    /// finds no entry, and removes the pending one.
    pub(super) fn add(&mut self, id: StreamId, pending: Pending) {
        match self.runs.last_mut() {
            Some((last, ids)) if *last == pending && ids.len() < IDS => ids.push(id),
            _ => self.runs.push((pending, vec![id])),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Logs the changes, with the last entry delivered to the group.
    pub(super) fn log(self, ctx: &mut Ctx<'_>, key: &Bytes, group: &Bytes, last: StreamId) {
        for (pending, ids) in &self.runs {
            let command = claim_command(key, group, ids, pending);
            let command = command.chain([word("LASTID"), last.text()]).collect();
            ctx.wrote([], command);
        }
    }
}

/// Logs the position of a group: XCLAIM does not record the number of entries read.
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

/// The position of a group.
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

/// Logs the creation of a consumer.
pub(super) fn log_consumer(ctx: &mut Ctx<'_>, key: &Bytes, group: &Bytes, consumer: &Bytes) {
    let head = [word("XGROUP"), word("CREATECONSUMER"), key.clone()];
    let names = [group.clone(), consumer.clone()];
    ctx.wrote([], head.into_iter().chain(names).collect());
}
