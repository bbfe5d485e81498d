//! Replies to calls. All calls of a type share one list of the client, which [`reader`] reads, and differ by
//! correlation id. Other calls have private lists ([`own`]). Each call is a [`call::Call`], which cleans up at its end.
//!
//! The name of a shared list has the same form as that of one call of Nooble4's clients, with the id of the process in
//! place of the call's.

mod call;
mod own;
mod reader;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::BlockingConn;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::NoobleKeys;
use meshwork_model::nooble::{Response, uuid};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guard::reading;
use super::request::{fresh, new_id};
use super::{ANSWER_WAITS, Error};
pub(super) use reader::Reader;

/// Greatest number of calls of one client in flight. Further calls fail.
const MAX_CALLS: usize = 100_000;
/// Greatest number of connections for private lists. Further calls wait for one.
const MAX_PARKED: usize = 8;
/// Greatest number of shared lists of one client, since each blocking read names all of them. Calls of further types
/// use the first one.
const MAX_LISTS: usize = 64;
/// Longest time for the release of lists, with one command each.
const END: Duration = Duration::from_secs(2);
/// Number of unblocking messages for a list: each pipelined read of a stopping reader takes one.
const GIVE_UP_AGAIN: usize = reader::AHEAD + 2;

/// Reply of a call, or the reason why it is invalid.
pub(super) type CallAnswer = Result<Response, String>;

/// Waiting calls of a client.
pub(super) struct Replies {
    /// Part of this client in the names of its lists: its service and a unique id.
    service: Arc<str>,
    process: String,
    /// Shared lists.
    lists: watch::Sender<Vec<String>>,
    /// Calls in flight, by correlation id.
    calls: Mutex<HashMap<String, PendingReply>>,
    /// Notified when a call was sent.
    called: Notify,
    /// Lists on which an unwanted reply may still arrive.
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
enum PendingReply {
    /// Waits for the reader; `None` once the reply was passed on.
    Shared(Option<oneshot::Sender<CallAnswer>>),
    /// Waits on this private list.
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

    fn calls(&self) -> MutexGuard<'_, HashMap<String, PendingReply>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the shared list for replies of an action type.
    pub(super) fn list(&self, names: &NoobleKeys, action_type: &str) -> String {
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

    /// Records that a call was sent: the time to remove unwanted replies.
    pub(super) fn called(&self) {
        self.called.notify_one();
    }

    fn hand_out(&self, came: Vec<Vec<u8>>, broker: &Nooble) {
        for message in came {
            self.take(&message, broker);
        }
    }

    /// Passes a reply to its waiting call. Late replies are dropped.
    fn take(&self, message: &[u8], broker: &Nooble) {
        let dialect = broker.names().dialect();
        let (id, answer) = match reading(|| Response::read(message, dialect, fresh)) {
            Ok(response) => (response.correlation_id.clone(), Ok(response)),
            Err(why) => match correlation(message) {
                Some(id) => (id, Err(why)),
                None => return tracing::warn!(why, "reply dropped: not a valid message"),
            },
        };
        // The correlation id stays reserved until the caller has the reply.
        let sender = match self.calls().get_mut(&id) {
            Some(PendingReply::Shared(sender)) => sender.take(),
            _ => None,
        };
        match sender {
            // A caller that stopped waiting drops the receiver.
            Some(sender) => drop(sender.send(answer)),
            None => tracing::info!(correlation_id = id, "reply dropped: its call has ended"),
        }
    }

    /// Ends the calls in flight, and refuses new ones.
    pub(super) fn close(&self, broker: &Nooble) {
        self.closed.cancel();
        let mut some_told = false;
        for waits in self.calls().values_mut() {
            match waits {
                PendingReply::Shared(sender) => {
                    *sender = None;
                    some_told = true;
                }
                PendingReply::Own(list) => {
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

    /// Waits until all private lists are released, at most for [`END`].
    pub(super) async fn ended(&self) {
        self.endings.close();
        if tokio::time::timeout(END, self.endings.wait())
            .await
            .is_err()
        {
            tracing::debug!("reply lists not deleted: they will expire");
        }
    }

    /// Records that no reply arrived for a call on this shared list.
    fn miss(&self, list: String) {
        self.missed().insert(list);
    }

    fn missed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the correlation id of a reply that cannot be decoded, if it is readable.
fn correlation(message: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Known {
        correlation_id: String,
    }
    let known: Known = serde_json::from_slice(message).ok()?;
    uuid(&known.correlation_id)
}

/// Releases a list on which a late reply may arrive, and which nobody reads any more.
async fn give_up(broker: &Nooble, list: &str) {
    for _ in 0..GIVE_UP_AGAIN {
        match broker.expire_replies(list, ANSWER_WAITS).await {
            Ok(true) => return,
            // The unblocking message may have ended a read.
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "reply list not deleted: it will expire"),
        }
    }
}
