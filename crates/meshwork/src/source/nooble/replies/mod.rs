//! The answers to calls, and who waits for them: one list of a client for all calls of a type ([`reader`] reads them), told
//! apart by correlation ids; and lists for single calls ([`own`]).
//!
//! A list is named as Nooble4's clients name that of one call, with the id of this process where theirs has the call's:
//! nobody can tell our calls from theirs.

mod own;
mod reader;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::Parking;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::QueueManager;
use meshwork_model::nooble::{Response, uuid};
use tokio::sync::{Notify, Semaphore, oneshot, watch};

use super::Error;
use super::guard::reading;
use super::request::{fresh, new_id};
pub(super) use reader::{Reader, give_up};

/// The most calls of one client under way: beyond, their callers are told so.
const MAX_CALLS: usize = 100_000;
/// The most connections on which calls wait that have lists of their own; the next ones wait for one of these.
const MAX_PARKED: usize = 8;
/// The most lists of one client: each wait names them all. Calls of further types are answered to the first.
const MAX_LISTS: usize = 64;

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
    /// A call is under way to its service.
    called: Notify,
    /// Those of them on which an answer may still come.
    missed: Mutex<HashSet<String>>,
    /// Connections for lists of single calls.
    spaces: Semaphore,
    idle: Mutex<Vec<Parking>>,
}

/// One call that waits; it is forgotten when this is dropped.
pub(super) struct Waiting<'a> {
    replies: &'a Replies,
    id: &'a str,
    answer: oneshot::Receiver<Told>,
}

impl Replies {
    pub(super) fn new(service: Arc<str>) -> Self {
        Self {
            service,
            process: new_id(),
            lists: watch::Sender::default(),
            waiting: Mutex::default(),
            called: Notify::new(),
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
    pub(super) fn expect<'a>(&'a self, id: &'a str) -> Result<Waiting<'a>, Error> {
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_CALLS {
            return Err(Error::TooMany { most: MAX_CALLS });
        }
        let (told, answer) = oneshot::channel();
        waiting.insert(id.to_owned(), told);
        Ok(Waiting {
            replies: self,
            id,
            answer,
        })
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
        let waits = self.waiting().remove(&id);
        match waits {
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

impl Waiting<'_> {
    /// The answer; None if none comes in time.
    pub(super) async fn answer(mut self, wait: Duration) -> Option<Told> {
        let answer = tokio::time::timeout(wait, &mut self.answer).await;
        answer.ok()?.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.replies.waiting().remove(self.id);
    }
}
