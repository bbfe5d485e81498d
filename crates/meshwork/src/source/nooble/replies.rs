//! The answers to calls: one list of a client for all calls of a type, read over one connection and told apart by their
//! correlation ids; and lists for single calls, over a bounded number of connections.
//!
//! A list is named as Nooble4's clients name that of one call, with the id of this process where theirs has the call's:
//! nobody can tell our calls from theirs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, Parking};
use meshwork_model::keys::nooble::QueueManager;
use meshwork_model::nooble::{Response, uuid};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::guard::reading;
use super::request::{fresh, new_id};
use super::{ANSWER_WAITS, Error};

/// The most calls of one client under way: beyond, their callers are told so.
const MAX_CALLS: usize = 100_000;
/// The most connections on which calls wait that have lists of their own; the next ones wait for one of these.
const MAX_PARKED: usize = 8;
/// How long one wait for answers lasts: a client that is dropped stops reading after it at the latest.
const SLICE: Duration = Duration::from_secs(5);
/// The most lists of one client: each wait names them all. Calls of further types are answered to the first.
const MAX_LISTS: usize = 64;
/// How long a wait that is told to end may take before the server is asked once more.
const UNPARK_AGAIN: Duration = Duration::from_millis(20);
/// How long the end of a reader is waited for: its lists are a command each.
const END: Duration = Duration::from_secs(2);
/// So often a list is given up: the wait of a reader that stops takes one word away.
const GIVE_UP_AGAIN: usize = 3;
/// How long one wait for an answer that stays has a connection for itself, while others may wait for it.
const TURN: Duration = Duration::from_secs(1);

/// What came for a call: its answer, or why that cannot be read.
pub(super) type Told = Result<Response, String>;

/// Who waits for which answer.
pub(super) struct Replies {
    /// What the names of the lists have of this client: its service, and an id that no other has.
    service: Arc<str>,
    process: String,
    /// The lists that answers come to.
    lists: watch::Sender<Vec<String>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Told>>>,
    /// Those of them on which an answer may still come.
    missed: Mutex<HashSet<String>>,
    /// Connections for lists of single calls.
    spaces: Semaphore,
    idle: Mutex<Vec<Parking>>,
}

/// One call that waits; it is forgotten when this is dropped.
pub(super) struct Waiting<'a> {
    replies: &'a Replies,
    id: String,
    answer: oneshot::Receiver<Told>,
}

/// A connection that one wait has for itself.
struct Space<'a> {
    parking: Parking,
    _permit: SemaphorePermit<'a>,
}

impl Replies {
    pub(super) fn new(service: Arc<str>) -> Self {
        Self {
            service,
            process: new_id(),
            lists: watch::Sender::default(),
            waiting: Mutex::default(),
            missed: Mutex::default(),
            spaces: Semaphore::new(MAX_PARKED),
            idle: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Told>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list that calls of a type are answered to.
    pub(super) fn list(&self, names: &QueueManager, action_type: &str) -> String {
        let mut list = names.response(&self.service, action_type, &self.process, None);
        self.lists.send_if_modified(|lists| {
            if lists.contains(&list) {
                return false;
            }
            if let Some(first) = lists.first().filter(|_| lists.len() >= MAX_LISTS) {
                list.clone_from(first);
                return false;
            }
            lists.push(list.clone());
            true
        });
        list
    }

    /// Begins to wait for the answer with this correlation id.
    pub(super) fn expect(&self, id: &str) -> Result<Waiting<'_>, Error> {
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_CALLS {
            return Err(Error::TooMany { most: MAX_CALLS });
        }
        let (told, answer) = oneshot::channel();
        waiting.insert(id.to_owned(), told);
        let id = id.to_owned();
        Ok(Waiting {
            replies: self,
            id,
            answer,
        })
    }

    /// Hands an answer to who waits for it; what comes too late is dropped.
    fn take(&self, message: &[u8], broker: &Nooble) {
        let dialect = broker.names().dialect();
        let (id, told) = match reading(|| Response::read(message, dialect, fresh())) {
            Ok(response) => (response.correlation_id.clone(), Ok(response)),
            Err(why) => match correlation(message) {
                Some(id) => (id, Err(why)),
                None => return tracing::warn!(why, "dropped an answer that is none"),
            },
        };
        match self.waiting().remove(&id) {
            // Who has given up meanwhile takes it no more.
            Some(waits) => drop(waits.send(told)),
            None => tracing::info!(correlation_id = id, "dropped an answer that comes too late"),
        }
    }

    /// An answer did not come in time to this list of many calls.
    pub(super) fn miss(&self, list: String) {
        self.missed().insert(list);
    }

    fn missed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to wait on. None if none is free in time.
    async fn space(&self, broker: &Nooble, until: Instant) -> Result<Option<Space<'_>>, Error> {
        let Ok(Ok(permit)) = tokio::time::timeout_at(until, self.spaces.acquire()).await else {
            return Ok(None);
        };
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let parking = match idle {
            Some(parking) => parking,
            None => broker.parking().await?,
        };
        Ok(Some(Space {
            parking,
            _permit: permit,
        }))
    }

    /// A wait is over, and its connection sound.
    fn vacate(&self, space: Space<'_>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(space.parking);
    }

    /// Waits for the answer on a list of one call, and leaves it there. Whoever finds no connection free looks once
    /// in each turn. None if none came in time.
    pub(super) async fn peek(
        &self,
        broker: &Nooble,
        list: &str,
        wait: Duration,
    ) -> Result<Option<(String, Response)>, Error> {
        let until = Instant::now() + wait;
        let dialect = broker.names().dialect();
        let mut came = broker.peek(list, None).await?;
        loop {
            if let Some(message) = came {
                match reading(|| Response::read(&message, dialect, fresh())) {
                    // What can be read is text.
                    Ok(response) => {
                        let text = String::from_utf8_lossy(&message).into_owned();
                        return Ok(Some((text, response)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "dropped an answer that is none");
                        broker.drop_reply(list, &message).await?;
                    }
                }
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            let turn = until.min(now + TURN);
            came = match self.space(broker, turn).await? {
                None => broker.peek(list, None).await?,
                Some(space) => {
                    let parked = Some((&space.parking, left(turn)));
                    let came = broker.peek(list, parked).await?;
                    self.vacate(space);
                    came
                }
            };
        }
    }

    /// Waits for the answer on a list of the call with this correlation id. None if none came in time.
    pub(super) async fn of_one(
        &self,
        broker: &Nooble,
        (list, id): (&str, &str),
        wait: Duration,
    ) -> Result<Option<Told>, Error> {
        let until = Instant::now() + wait;
        let Some(space) = self.space(broker, until).await? else {
            return Ok(None);
        };
        let one = [list.to_owned()];
        let dialect = broker.names().dialect();
        let read = |message: &Vec<u8>| {
            let read = reading(|| Response::read(message, dialect, fresh()));
            if let Err(why) = &read
                && correlation(message).as_deref() != Some(id)
            {
                tracing::warn!(why, "dropped an answer that is none");
                return None;
            }
            Some(read)
        };
        loop {
            let came = broker.replies(&space.parking, &one, left(until)).await?;
            let answer = came.iter().find_map(read);
            if answer.is_some() || Instant::now() >= until {
                self.vacate(space);
                return Ok(answer);
            }
        }
    }
}

/// Which call an answer is to that cannot be read, if it says so much.
fn correlation(message: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Known {
        correlation_id: String,
    }
    let known: Known = serde_json::from_slice(message).ok()?;
    uuid(&known.correlation_id)
}

/// What is left of a wait; 0 would be for ever.
fn left(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

impl Waiting<'_> {
    /// The answer; None if none comes in time.
    pub(super) async fn answer(mut self, wait: Duration) -> Option<Told> {
        let answer = tokio::time::timeout(wait, &mut self.answer).await;
        answer.ok()?.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.replies.waiting().remove(&self.id);
    }
}

/// Who reads the lists of answers, until this is dropped or ended.
pub(super) struct Reader {
    stop: CancellationToken,
    task: TaskTracker,
    _guard: DropGuard,
}

impl Reader {
    /// Starts to read.
    pub(super) fn start(broker: Nooble, replies: Arc<Replies>) -> Self {
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
    pub(super) async fn end(&self) {
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
pub(super) async fn give_up(broker: &Nooble, list: &str) {
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
    let (mut changes, mut turn) = (replies.lists.subscribe(), 0);
    loop {
        let mut lists = changes.borrow_and_update().clone();
        if lists.is_empty() {
            // The sender is in `replies`, which is there.
            let _ = changes.changed().await;
            continue;
        }
        // None of them goes first for ever.
        turn = (turn + 1) % lists.len();
        lists.rotate_left(turn);
        let came = match &parking {
            Some(parking) => wait(broker, parking, &lists, &mut changes).await,
            None => match broker.parking().await {
                Ok(made) => {
                    parking = Some(made);
                    continue;
                }
                Err(error) => Err(error),
            },
        };
        match came {
            Ok(came) => {
                backoff = Backoff::new();
                for message in came {
                    replies.take(&message, broker);
                }
                // Who has an answer goes first, not the next wait.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "the wait for answers broke off");
                parking = None;
                backoff.wait().await;
            }
        }
    }
}

/// One wait, which ends when there is another list; what came until then is seen.
async fn wait(
    broker: &Nooble,
    parking: &Parking,
    lists: &[String],
    changes: &mut watch::Receiver<Vec<String>>,
) -> Result<Vec<Vec<u8>>, meshwork_broker::Error> {
    let wait = broker.replies(parking, lists, SLICE);
    tokio::pin!(wait);
    tokio::select! {
        came = &mut wait => return came,
        // The sender lives as long as the wait.
        _ = changes.changed() => {}
    }
    loop {
        if let Err(error) = broker.unpark(parking).await {
            tracing::debug!(%error, "the wait ends by itself");
        }
        // The wait may have reached the server only after the word to end it.
        if let Ok(came) = tokio::time::timeout(UNPARK_AGAIN, &mut wait).await {
            return came;
        }
    }
}
