//! take: messages that are to be sent, each under a lease.

use std::time::Duration;

use super::{ContextStore, Database};
use crate::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// The keys of a context's outgoing messages.
#[derive(Debug, Clone, Copy)]
pub struct Outbox<'a> {
    /// Those that nobody has taken.
    pub waiting: &'a str,
    /// Those that a coordinator has.
    pub taken: &'a str,
    /// Until when, each.
    pub leases: &'a str,
}

impl ContextStore {
    /// Takes at most `most` messages off an outbox: those whose lease is over, then those that wait. Nobody else is given
    /// them for `lease`; each is to be settled by a [`Commit`](super::Commit) that drops it.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, [`Error::WrongKind`] if a key holds another kind of value, and if the server does
    /// not take the call.
    pub async fn take(
        &self,
        database: Database,
        outbox: Outbox<'_>,
        lease: Duration,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        at_most("take", MAX_ITEMS, most)?;
        let call = self.scripts.call(Verb::ContextTake);
        let call = call
            .key(outbox.waiting)
            .key(outbox.taken)
            .key(outbox.leases);
        let call = database.entered(call.arg(self.clock.argument()));
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        call.arg(lease).arg(most).run(&self.conn).await
    }
}
