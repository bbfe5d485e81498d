//! The engine: who holds the data, who may call, in which order things happen. One lock guards
//! all of it; commands run in the task of the caller, so that a sequential caller pays no hop to
//! another thread. The commands are in `command`, the data in `store`, the file in `log`.

mod clock;
mod journal;

use bytes::Bytes;

pub use clock::Clock;
pub(crate) use journal::Journal;

use crate::{Reply, command::Effect};

/// An engine. Clones are cheap and stand for the same one; it ends with the last of them.
#[derive(Clone)]
pub struct Handle {}

impl Handle {
    /// An empty engine that keeps nothing on disk.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {}
    }

    /// An empty engine whose time is `clock`.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        let _ = clock;
        Self {}
    }

    /// A new session: database 0, RESP2.
    #[must_use]
    pub fn session(&self) -> Session {
        Session {}
    }

    /// Runs one command of the log, before [`Self::attach`]. Nothing expires and nothing is
    /// logged. An error reply comes back as the error: such a log was not written by an engine.
    pub(crate) fn replay(&self, db: usize, args: &[Bytes]) -> Result<(), String> {
        let _ = (db, args);
        Ok(())
    }

    /// From here on every write goes to `journal` before anybody is told of it.
    pub(crate) fn attach(&self, journal: Box<dyn Journal>) {
        drop(journal);
    }

    /// All data as the commands that make it, and at the same moment [`Journal::snapshot_taken`].
    pub(crate) fn snapshot(&self) -> Vec<Effect> {
        Vec::new()
    }
}

/// What one client has with the engine: its database, protocol, transaction and subscriptions.
pub struct Session {}

impl Session {
    /// Runs one command. A blocking one waits; dropped while it waits, it takes nothing: an
    /// element that had already been popped for it goes back to where it was.
    ///
    /// Messages that were pushed to this session before the reply are in the queue of
    /// [`Self::try_push`] when the call returns: write them before the reply.
    pub async fn call(&mut self, args: &[Bytes]) -> Reply {
        let _ = args;
        Reply::Nothing
    }

    /// The next message pushed to this session (pub/sub), or none when the session is over:
    /// after `QUIT`, killed by `CLIENT KILL`, or cut off because it let too many messages lie.
    pub async fn next_push(&mut self) -> Option<Reply> {
        None
    }

    /// The next message that already lies there.
    pub fn try_push(&mut self) -> Option<Reply> {
        None
    }

    /// Whether the session is over; the connection closes after the reply has been written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        false
    }

    /// The protocol that replies and pushes are to be encoded in from now on.
    #[must_use]
    pub fn protocol(&self) -> crate::Protocol {
        crate::Protocol::Resp2
    }
}

/// What a session command works on.
pub(crate) struct Call<'a> {
    core: std::marker::PhantomData<&'a mut ()>,
}
