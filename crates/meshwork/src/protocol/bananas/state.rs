//! The parts of a worker that only the protocol of Bananas has: its handlers and routes, and the queues without a route from
//! which nothing is taken for a while.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::Bananas;
use meshwork_model::bananas::Peer;
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Foreign;
use crate::protocol::handlers::Handlers;
use crate::worker::Identity;

/// Between two looks past jobs that are left where they stand, on queues without a route.
const PLAIN_RESTS: Duration = Duration::from_secs(1);

/// The protocol of Bananas, for one worker.
pub(super) struct BananasProtocol {
    pub(super) broker: Bananas,
    pub(super) identity: Identity,
    pub(super) handlers: Handlers,
    pub(super) routes: Routes,
    /// The queues that it takes from; they never change.
    pub(super) lists: watch::Sender<Arc<Vec<String>>>,
    pub(super) max_retries: u32,
    pub(super) foreign: Foreign,
    pub(super) peer: Peer,
    pub(super) strays: Option<Duration>,
    pub(super) scheduler: bool,
    /// Time of the next scan past foreign jobs on queues without a route. While set, nothing is claimed there.
    pub(super) rests: watch::Sender<Option<Instant>>,
    /// Position of the scan in each queue without a route.
    pub(super) behind: tokio::sync::Mutex<Vec<usize>>,
}

impl BananasProtocol {
    /// A job is left where it stands, on a queue without a route: nothing is taken from such queues.
    pub(super) fn let_plain_rest(&self) {
        self.rests.send_replace(Some(Instant::now() + PLAIN_RESTS));
    }

    /// No job is left any more.
    pub(super) fn end_plain_rest(&self) {
        self.rests.send_replace(None);
    }

    /// True if a scan past foreign jobs is due.
    pub(super) fn looks_at_left(&self) -> bool {
        self.rests.borrow().is_some_and(|at| at <= Instant::now())
    }

    /// True if nothing is claimed from a queue for now.
    pub(super) fn rests(&self, list: &str) -> bool {
        self.rests.borrow().is_some() && self.broker.keys().is_plain(list)
    }

    /// Those of its queues that have no route.
    pub(super) fn plain_lists(&self) -> Vec<String> {
        let (keys, lists) = (self.broker.keys(), Arc::clone(&self.lists.borrow()));
        let plain = lists.iter().filter(|list| keys.is_plain(list));
        plain.cloned().collect()
    }

    /// The queues to take from now, when so many claims have brought jobs before.
    pub(super) fn lists(&self, claims: usize) -> Vec<String> {
        let routes = self.routes.in_turn(claims);
        let mut lists = self.broker.keys().lists(&routes);
        lists.retain(|list| !self.rests(list));
        lists
    }
}
