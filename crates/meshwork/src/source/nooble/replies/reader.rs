//! The one that reads the lists of many calls, over one connection: an answer goes to who waits for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, Parking};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::super::ANSWER_WAITS;
use super::Replies;

/// How long one wait for answers lasts: a client that is dropped stops reading after it at the latest.
const SLICE: Duration = Duration::from_secs(5);
/// Waits under way, one behind the other.
const AHEAD: usize = 2;
/// How long a wait that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);
/// How long the end of a reader is waited for: its lists are a command each.
const END: Duration = Duration::from_secs(2);
/// So often a list is given up: each wait of a reader that stops takes one word away.
const GIVE_UP_AGAIN: usize = AHEAD + 2;

/// Who reads the lists of answers, until this is dropped or ended.
pub(in crate::source::nooble) struct Reader {
    stop: CancellationToken,
    task: TaskTracker,
    _guard: DropGuard,
}

impl Reader {
    /// Starts to read.
    pub(in crate::source::nooble) fn start(broker: Nooble, replies: Arc<Replies>) -> Self {
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

    /// Stops it, and returns when its lists are forgotten, or the server took too long for it.
    pub(in crate::source::nooble) async fn end(&self) {
        self.stop.cancel();
        if tokio::time::timeout(END, self.task.wait()).await.is_err() {
            tracing::debug!("late answers may stay");
        }
    }
}

/// Nobody reads the lists any more.
async fn forget(broker: &Nooble, replies: &Replies) {
    let missed = std::mem::take(&mut *replies.missed());
    let mut lists = replies.lists.borrow().clone();
    lists.retain(|list| !missed.contains(list));
    if !lists.is_empty()
        && let Err(error) = broker.forget_replies(&lists).await
    {
        tracing::debug!(%error, "the lists of answers end by themselves");
    }
    for list in missed {
        give_up(broker, &list).await;
    }
}

/// Nobody reads a list any more on which an answer may still come.
pub(in crate::source::nooble) async fn give_up(broker: &Nooble, list: &str) {
    for _ in 0..GIVE_UP_AGAIN {
        match broker.give_up_replies(list, ANSWER_WAITS).await {
            Ok(true) => return,
            // A wait that was under way may have ended by it.
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "a late answer may stay"),
        }
    }
}

async fn keep_reading(broker: &Nooble, replies: &Replies) {
    let mut backoff = Backoff::new();
    let mut parking: Option<Parking> = None;
    let mut changes = replies.lists.subscribe();
    loop {
        let lists = changes.borrow_and_update().clone();
        if lists.is_empty() {
            // The sender is in `replies`, which is there.
            let _ = changes.changed().await;
            continue;
        }
        let read = match &parking {
            Some(parking) => {
                let waits = Waits::new(broker, parking, lists);
                waits.read(replies, &mut changes, &mut backoff).await
            }
            None => broker.parking().await.map(|made| parking = Some(made)),
        };
        if let Err(error) = read {
            tracing::warn!(%error, "the wait for answers broke off");
            parking = None;
            backoff.wait().await;
        }
    }
}

type Came = Result<Vec<Vec<u8>>, meshwork_broker::Error>;

/// Waits on the same lists, one behind the other on one connection: when the first ends, the server has the next one
/// already, and an answer never waits for one to be sent.
struct Waits<'a> {
    broker: &'a Nooble,
    parking: &'a Parking,
    lists: Vec<String>,
    sent: FuturesOrdered<BoxFuture<'a, Came>>,
}

impl<'a> Waits<'a> {
    fn new(broker: &'a Nooble, parking: &'a Parking, lists: Vec<String>) -> Self {
        Self {
            broker,
            parking,
            lists,
            sent: FuturesOrdered::new(),
        }
    }

    fn send(&mut self) {
        while self.sent.len() < AHEAD {
            // None of them goes first for ever.
            self.lists.rotate_left(1);
            let (broker, parking, lists) = (self.broker, self.parking, self.lists.clone());
            let before = SLICE * self.sent.len() as u32;
            let wait = async move { broker.replies(parking, &lists, SLICE, before).await };
            self.sent.push_back(Box::pin(wait));
        }
    }

    /// Hands out what comes until there is another list.
    async fn read(
        mut self,
        replies: &Replies,
        changes: &mut watch::Receiver<Vec<String>>,
        backoff: &mut Backoff,
    ) -> Result<(), meshwork_broker::Error> {
        loop {
            self.send();
            let came = tokio::select! {
                Some(came) = self.sent.next() => came?,
                // The sender lives as long as the wait.
                _ = changes.changed() => return self.end(replies).await,
            };
            *backoff = Backoff::new();
            hand_out(came, replies, self.broker);
            // Who has an answer goes first, not the next wait.
            tokio::task::yield_now().await;
        }
    }

    /// Ends the waits; what came until then is seen.
    async fn end(mut self, replies: &Replies) -> Result<(), meshwork_broker::Error> {
        while !self.sent.is_empty() {
            if let Err(error) = self.broker.unpark(self.parking).await {
                tracing::debug!(%error, "the wait ends by itself");
            }
            // The wait may have reached the server only after the word to end it.
            let ended = tokio::time::timeout(UNPARK_AGAIN, self.sent.next());
            if let Ok(Some(came)) = ended.await {
                hand_out(came?, replies, self.broker);
            }
        }
        Ok(())
    }
}

fn hand_out(came: Vec<Vec<u8>>, replies: &Replies, broker: &Nooble) {
    for message in came {
        replies.take(&message, broker);
    }
}
