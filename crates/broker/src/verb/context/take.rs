//! take: claims messages to send, each under a lease.

use meshwork_macros::boxed;
use std::time::Duration;

use super::{ContextStore, Database};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Keys of a context's outgoing messages.
#[derive(Debug, Clone, Copy)]
pub struct Outbox<'a> {
    /// List of the messages that no coordinator has claimed.
    pub waiting: &'a str,
    /// List of the messages that a coordinator has claimed.
    pub taken: &'a str,
    /// Sorted set with the end of each lease.
    pub leases: &'a str,
}

impl ContextStore {
    /// Claims at most `most` messages of an outbox: first those whose lease has expired, then waiting ones. No other
    /// coordinator gets them for `lease`. A [`Commit`](super::Commit) that drops the message ends its lease.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, [`Error::WrongKind`] if a key has another type, or the call to the server
    /// fails.
    #[boxed]
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
