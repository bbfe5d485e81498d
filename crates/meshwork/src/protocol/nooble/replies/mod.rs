//! The answers to calls, and who waits for them: one list of a client for all calls of a type ([`reader`] reads them), told
//! apart by correlation ids; and lists for single calls ([`own`]). A call of either kind is a [`call::Call`], which ends what is left of it.
//!
//! A list is named as Nooble4's clients name that of one call, with the id of this process where theirs has the call's:
//! nobody can tell our calls from theirs.

mod call;
mod own;
mod reader;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::BlockingConn;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::QueueManager;
use meshwork_model::nooble::{Response, uuid};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guard::reading;
use super::request::{fresh, new_id};
use super::{ANSWER_WAITS, Error};
pub(super) use reader::Reader;

/// The most calls of one client under way: beyond, their callers are told so.
const MAX_CALLS: usize = 100_000;
/// The most connections on which calls wait that have lists of their own; the next ones wait for one of these.
const MAX_PARKED: usize = 8;
/// The most lists of one client: each wait names them all. Calls of further types are answered to the first.
const MAX_LISTS: usize = 64;
/// How long it is waited for that lists are forgotten or given up: a command each.
const END: Duration = Duration::from_secs(2);
/// So often a list is given up: each wait of a reader that stops takes one word away.
const GIVE_UP_AGAIN: usize = reader::AHEAD + 2;

/// What came for a call: its answer, or why that cannot be read.
pub(super) type Told = Result<Response, String>;

/// Who waits for which answer.
pub(super) struct Replies {
    /// What the names of the lists have of this client: its service, and an id that no other has.
    service: Arc<str>,
    process: String,
    /// The lists that answers come to.
    lists: watch::Sender<Vec<String>>,
    /// The calls under way, by their correlation ids.
    calls: Mutex<HashMap<String, Waits>>,
    /// A call is under way to its service.
    called: Notify,
    /// The lists on which an answer may still come that nobody waits for.
    missed: Mutex<HashSet<String>>,
    /// No call begins any more, and none goes on.
    closed: CancellationToken,
    /// What gives up lists of single calls.
    endings: TaskTracker,
    /// Connections for lists of single calls.
    spaces: Semaphore,
    idle: Mutex<Vec<BlockingConn>>,
}

/// How a call waits.
enum Waits {
    /// It is told, if that was not done.
    Told(Option<oneshot::Sender<Told>>),
    /// On this list of its own.
    Own(String),
}

impl Replies {
    pub(super) fn new(service: Arc<str>) -> Self {
        Self {
            service,
            process: new_id(),
            lists: watch::Sender::default(),
            calls: Mutex::default(),
            called: Notify::new(),
            missed: Mutex::default(),
            closed: CancellationToken::new(),
            endings: TaskTracker::new(),
            spaces: Semaphore::new(MAX_PARKED),
            idle: Mutex::default(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Waits>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A call is under way to its service: the time for what nobody waits for.
    pub(super) fn called(&self) {
        self.called.notify_one();
    }

    fn hand_out(&self, came: Vec<Vec<u8>>, broker: &Nooble) {
        for message in came {
            self.take(&message, broker);
        }
    }

    /// Hands an answer to who waits for it; what comes too late is dropped.
    fn take(&self, message: &[u8], broker: &Nooble) {
        let dialect = broker.names().dialect();
        let (id, told) = match reading(|| Response::read(message, dialect, fresh)) {
            Ok(response) => (response.correlation_id.clone(), Ok(response)),
            Err(why) => match correlation(message) {
                Some(id) => (id, Err(why)),
                None => return tracing::warn!(why, "dropped an answer that is none"),
            },
        };
        // The call stays the only one of this id until its caller has it.
        let tells = match self.calls().get_mut(&id) {
            Some(Waits::Told(tells)) => tells.take(),
            _ => None,
        };
        match tells {
            // Who has given up meanwhile takes it no more.
            Some(tells) => drop(tells.send(told)),
            None => tracing::info!(correlation_id = id, "dropped an answer that comes too late"),
        }
    }

    /// Ends the calls under way, and lets none begin.
    pub(super) fn close(&self, broker: &Nooble) {
        self.closed.cancel();
        let mut some_told = false;
        for waits in self.calls().values_mut() {
            match waits {
                Waits::Told(tells) => {
                    *tells = None;
                    some_told = true;
                }
                Waits::Own(list) => {
                    let (broker, list) = (broker.clone(), list.clone());
                    let gives_up = async move { give_up(&broker, &list).await };
                    self.endings.spawn(gives_up);
                }
            }
        }
        if some_told {
            self.missed().extend(self.lists.borrow().iter().cloned());
        }
    }

    /// Returns when no list of a single call is left to be given up, or the server took too long for it.
    pub(super) async fn ended(&self) {
        self.endings.close();
        if tokio::time::timeout(END, self.endings.wait())
            .await
            .is_err()
        {
            tracing::debug!("late answers may stay");
        }
    }

    /// An answer did not come to a call that waited on this list of many.
    fn miss(&self, list: String) {
        self.missed().insert(list);
    }

    fn missed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Nobody reads a list any more on which an answer may still come.
async fn give_up(broker: &Nooble, list: &str) {
    for _ in 0..GIVE_UP_AGAIN {
        match broker.give_up_replies(list, ANSWER_WAITS).await {
            Ok(true) => return,
            // A wait that was under way may have ended by it.
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "a late answer may stay"),
        }
    }
}
