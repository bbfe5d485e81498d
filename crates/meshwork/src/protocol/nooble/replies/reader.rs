//! Reader of shared lists, over one connection. It passes each reply to its waiting call.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, BlockingConn};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::{END, Replies, give_up};
use meshwork_worker::PipelinedReads;

/// Longest single blocking read; a dropped client stops reading within it.
const SLICE: Duration = Duration::from_secs(2);
/// Number of pipelined reads, so that the next one is already queued when a reply arrives.
pub(super) const AHEAD: usize = 4;
/// Number of ended reads after which as many new ones are sent.
const OVER: usize = 2;

/// Reader of the shared lists, until it is ended or dropped.
pub(in crate::protocol::nooble) struct Reader {
    stop: CancellationToken,
    task: TaskTracker,
    _guard: DropGuard,
}

impl Reader {
    /// Starts the reader.
    pub(in crate::protocol::nooble) fn start(broker: Nooble, replies: Arc<Replies>) -> Self {
        let (stop, task) = (CancellationToken::new(), TaskTracker::new());
        let stopped = stop.clone();
        task.spawn(async move {
            stopped
                .run_until_cancelled(keep_reading(&broker, &replies))
                .await;
            forget(&broker, &replies).await;
        });
        task.close();
        Self {
            _guard: stop.clone().drop_guard(),
            stop,
            task,
        }
    }

    /// Stops the reader. Returns when its lists are released, at most after [`END`].
    pub(in crate::protocol::nooble) async fn end(&self) {
        self.stop.cancel();
        if tokio::time::timeout(END, self.task.wait()).await.is_err() {
            tracing::debug!("reply lists not deleted: they will expire");
        }
    }
}

/// Releases the shared lists, which nobody reads any more.
async fn forget(broker: &Nooble, replies: &Replies) {
    let missed = std::mem::take(&mut *replies.missed());
    let mut lists = replies.lists.borrow().clone();
    lists.retain(|list| !missed.contains(list));
    if !lists.is_empty()
        && let Err(error) = broker.delete_replies(&lists).await
    {
        tracing::debug!(%error, "reply lists not deleted: they will expire");
    }
    for list in missed {
        give_up(broker, &list).await;
    }
}

async fn keep_reading(broker: &Nooble, replies: &Replies) {
    let mut backoff = Backoff::new();
    let mut waits = None;
    let mut changes = replies.lists.subscribe();
    loop {
        let lists = changes.borrow_and_update().clone();
        if lists.is_empty() {
            // The sender belongs to `replies`, which is alive.
            let _ = changes.changed().await;
            continue;
        }
        let read = match &mut waits {
            Some(waits) => {
                let reading = Reading {
                    broker,
                    replies,
                    lists,
                    waits,
                };
                reading.until(&mut changes, &mut backoff).await
            }
            None => match broker.blocking_conn().await {
                Ok(conn) => {
                    waits = Some(PipelinedReads::over(conn));
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = read {
            broker.outages().failed("replies", &error);
            waits = None;
            backoff.wait().await;
        }
    }
}

/// Pipelined reads of the same lists.
struct Reading<'a> {
    broker: &'a Nooble,
    replies: &'a Replies,
    lists: Vec<String>,
    waits: &'a mut PipelinedReads<BlockingConn, Vec<Vec<u8>>>,
}

impl Reading<'_> {
    fn send(&mut self) {
        while self.waits.len() < AHEAD {
            // Rotated, so that each list is first in turn.
            self.lists.rotate_left(1);
            let lists = self.lists.clone();
            let before = SLICE * self.waits.len() as u32;
            let broker = self.broker.clone();
            self.waits
                .push(|conn| async move { broker.replies(&conn, &lists, SLICE, before).await });
        }
    }

    /// Passes on replies until there is another list.
    async fn until(
        mut self,
        changes: &mut watch::Receiver<Vec<String>>,
        backoff: &mut Backoff,
    ) -> Result<(), meshwork_broker::Error> {
        self.send();
        loop {
            tokio::select! {
                came = self.waits.next() => {
                    self.replies.hand_out(came?, self.broker);
                    *backoff = Backoff::new();
                    self.broker.outages().succeeded("replies");
                    if self.waits.is_empty() {
                        self.send();
                    }
                }
                // Callers with a reply have their turn first, and may call again now.
                () = self.replies.called.notified() => if self.waits.len() + OVER <= AHEAD {
                    self.send();
                },
                // The sender lives as long as the read.
                _ = changes.changed() => {
                    let hand_out = |came| self.replies.hand_out(came, self.broker);
                    let end = async |conn| self.broker.unblock(&conn).await;
                    return self.waits.end(end, hand_out).await;
                }
            }
        }
    }
}
