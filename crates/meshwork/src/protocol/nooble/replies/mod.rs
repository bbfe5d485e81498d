//! Answers to calls. All calls of a type share one list of the client ([`reader`] reads them) and differ by
//! correlation id; other calls have private lists ([`own`]). A call of either kind is a [`call::Call`], which cleans
//! up at its end.
//!
//! A list is named as that of one call by Nooble4's clients, with this process's id in place of the call's:
//! indistinguishable from theirs.

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

/// Most calls in flight of one client: further calls get an error.
const MAX_CALLS: usize = 100_000;
/// Most connections for calls with private lists; further calls wait for one of these.
const MAX_PARKED: usize = 8;
/// The most lists of one client: each wait names them all. Calls of further types are answered to the first.
const MAX_LISTS: usize = 64;
/// Timeout of the release of lists: one command each.
const END: Duration = Duration::from_secs(2);
/// Number of unblocking messages for a list: each wait of a reader that stops takes one.
const GIVE_UP_AGAIN: usize = reader::AHEAD + 2;

/// The answer of a call, or the reason why it is unreadable.
pub(super) type CallAnswer = Result<Response, String>;

/// Waiting calls of a client.
pub(super) struct Replies {
    /// The parts of this client in its lists' names: its service and a unique id.
    service: Arc<str>,
    process: String,
    /// The shared lists.
    lists: watch::Sender<Vec<String>>,
    /// The calls under way, by their correlation ids.
    calls: Mutex<HashMap<String, Waits>>,
    /// Notified when a call was sent.
    called: Notify,
    /// Lists on which an unwanted answer may still come.
    missed: Mutex<HashSet<String>>,
    /// Cancelled when no call may begin or continue.
    closed: CancellationToken,
    /// Tasks that release private lists.
    endings: TaskTracker,
    /// Permits of connections for private lists.
    spaces: Semaphore,
    idle: Mutex<Vec<BlockingConn>>,
}

/// State of a waiting call.
enum Waits {
    /// Through a channel; none once the answer was sent.
    Shared(Option<oneshot::Sender<CallAnswer>>),
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

    /// The shared list for answers of an action type.
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

    /// Notes that a call was sent: the time to remove unwanted answers.
    pub(super) fn called(&self) {
        self.called.notify_one();
    }

    fn hand_out(&self, came: Vec<Vec<u8>>, broker: &Nooble) {
        for message in came {
            self.take(&message, broker);
        }
    }

    /// Delivers an answer to its waiting call; late answers are dropped.
    fn take(&self, message: &[u8], broker: &Nooble) {
        let dialect = broker.names().dialect();
        let (id, answer) = match reading(|| Response::read(message, dialect, fresh)) {
            Ok(response) => (response.correlation_id.clone(), Ok(response)),
            Err(why) => match correlation(message) {
                Some(id) => (id, Err(why)),
                None => return tracing::warn!(why, "dropped an answer that is none"),
            },
        };
        // The correlation id stays reserved until the caller has the answer.
        let sender = match self.calls().get_mut(&id) {
            Some(Waits::Shared(sender)) => sender.take(),
            _ => None,
        };
        match sender {
            // A caller that has given up drops the receiver.
            Some(sender) => drop(sender.send(answer)),
            None => tracing::info!(correlation_id = id, "dropped an answer that comes too late"),
        }
    }

    /// Ends the calls under way, and lets none begin.
    pub(super) fn close(&self, broker: &Nooble) {
        self.closed.cancel();
        let mut some_told = false;
        for waits in self.calls().values_mut() {
            match waits {
                Waits::Shared(sender) => {
                    *sender = None;
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
