//! A session: the state of one client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::{Shared, dispatch::Step};
use crate::{Protocol, Reply, world::Client};

/// State of one client: database, protocol, transaction and subscriptions.
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

    /// Runs one command; errors are replies. A blocking one waits until it is served, its timeout is over, or `CLIENT
    /// UNBLOCK` ends it. If the future is dropped while it waits, it takes nothing: an element that had been popped
    /// for it goes back.
    ///
    /// Messages that were pushed to this session before the reply are then available from [`Self::try_push`]: write
    /// them before the reply.
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

    /// Returns the next message pushed to this session (pub/sub). `None` if the session is over: after `QUIT`, by
    /// `CLIENT KILL`, or because too many messages were not read.
    pub async fn next_push(&mut self) -> Option<Reply> {
        self.pushes.recv().await
    }

    /// Returns the next available message.
    pub fn try_push(&mut self) -> Option<Reply> {
        self.pushes.try_recv().ok()
    }

    /// Returns whether the session is over; the connection closes after the reply was written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let core = self.shared.lock();
        core.world.clients.get(self.id).is_none_or(Client::is_over)
    }

    /// Returns the protocol of replies and pushes.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        let core = self.shared.lock();
        core.world
            .clients
            .get(self.id)
            .map_or(Protocol::Resp2, |client| client.protocol)
    }

    /// Sets the client's address for `CLIENT LIST`: `ip:port`, or the path of a socket with `:0`.
    pub fn set_address(&mut self, address: impl Into<String>) {
        if let Some(client) = self.shared.lock().world.clients.get_mut(self.id) {
            client.address = address.into();
        }
    }

    /// Returns the client's id, as `CLIENT ID` shows it.
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

/// A blocked client, which is unblocked when this is dropped.
struct Wait<'a> {
    session: &'a Session,
    args: &'a [Bytes],
    /// `None` after the reply was taken.
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
                    // It may have been served between the timeout and this line.
                    let mut core = self.session.shared.lock();
                    core.world.waiters.forget(self.session.id);
                    Ok(receiver.try_recv().unwrap_or(Reply::NilArray))
                }
            }
        };
        self.reply = None;
        // A blocked client gets no reply only if it was killed.
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
                world.undo_pop(db, self.args, &reply, now_us);
                // The log fails then, and the change is logged later.
                let _ = world.settle(now_us);
            }
        });
    }
}
