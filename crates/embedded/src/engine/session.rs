//! A session: what one client has with the engine.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::{Shared, dispatch::Step};
use crate::{Protocol, Reply, world::Client};

/// What one client has with the engine: its database, protocol, transaction and subscriptions.
pub struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
    pushes: mpsc::Receiver<Reply>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (id, pushes) = {
            let mut core = shared.lock();
            let now_ms = core.world.clock.now_ms();
            core.world.clients.add(now_ms)
        };
        Self { shared, id, pushes }
    }

    /// Runs one command; its errors are replies. A blocking one waits until it is served, its
    /// time is over, or `CLIENT UNBLOCK` ends it. Dropped while it waits, it takes nothing: an
    /// element that had already been popped for it goes back to where it was.
    ///
    /// Messages that were pushed to this session before the reply lie ready for
    /// [`Self::try_push`] when the call returns: write them before the reply.
    pub async fn call(&mut self, args: &[Bytes]) -> Reply {
        let step = self.shared.with(|core| core.request(self.id, args));
        match step {
            Step::Done(reply) => reply,
            Step::Waits { timeout_ms, reply } => {
                let wait = Wait {
                    session: self,
                    args,
                    reply: Some(reply),
                };
                let reply = wait.finish(timeout_ms).await;
                self.shared.lock().mute(self.id, reply)
            }
        }
    }

    /// The next message pushed to this session (pub/sub), or none when the session is over:
    /// after `QUIT`, killed by `CLIENT KILL`, or cut off because it let too many messages lie.
    pub async fn next_push(&mut self) -> Option<Reply> {
        self.pushes.recv().await
    }

    /// The next message that already lies there.
    pub fn try_push(&mut self) -> Option<Reply> {
        self.pushes.try_recv().ok()
    }

    /// Whether the session is over; the connection closes after the reply has been written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let core = self.shared.lock();
        core.world.clients.get(self.id).is_none_or(Client::is_over)
    }

    /// The protocol that replies and pushes are encoded in from now on.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        let core = self.shared.lock();
        core.world
            .clients
            .get(self.id)
            .map_or(Protocol::Resp2, |client| client.protocol)
    }

    /// Where the client comes from, for `CLIENT LIST`: `ip:port`, or the path of a socket with `:0`.
    pub fn set_address(&mut self, address: impl Into<String>) {
        if let Some(client) = self.shared.lock().world.clients.get_mut(self.id) {
            client.address = address.into();
        }
    }

    /// The id of the client, as `CLIENT ID` says it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        let world = &mut core.world;
        world.waiters.forget(self.id);
        world.unwatch(self.id);
        world.unsubscribe_all(self.id);
        world.clients.remove(self.id);
    }
}

/// A client that waits for a key, and takes itself off when it is dropped.
struct Wait<'a> {
    session: &'a Session,
    args: &'a [Bytes],
    /// None once the reply was taken.
    reply: Option<oneshot::Receiver<Reply>>,
}

impl Wait<'_> {
    async fn finish(mut self, timeout_ms: u64) -> Reply {
        let Some(receiver) = &mut self.reply else {
            return Reply::NilArray;
        };
        let reply = if timeout_ms == 0 {
            receiver.await
        } else {
            match tokio::time::timeout(Duration::from_millis(timeout_ms), &mut *receiver).await {
                Ok(reply) => reply,
                Err(_over) => {
                    // It may have been served between the end of the time and this line.
                    let mut core = self.session.shared.lock();
                    core.world.waiters.forget(self.session.id);
                    Ok(receiver.try_recv().unwrap_or(Reply::NilArray))
                }
            }
        };
        self.reply = None;
        // Who waits goes without an answer only if the client was killed.
        reply.unwrap_or_else(|_| Reply::Error("ERR the client was killed".to_owned()))
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(mut receiver) = self.reply.take() else {
            return;
        };
        self.session.shared.with(|core| {
            let world = &mut core.world;
            world.waiters.forget(self.session.id);
            if let Ok(reply) = receiver.try_recv() {
                let db = world
                    .clients
                    .get(self.session.id)
                    .map_or(0, |client| client.db);
                let now_us = world.clock.now_us();
                world.give_back(db, self.args, &reply, now_us);
                // The log is in trouble then, and what was not logged stays to be logged.
                let _ = world.settle(now_us);
            }
        });
    }
}
