//! State of a worker for jobs of Bananas: handlers, routes, and the pause of claims from queues without a route.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::Bananas;
use meshwork_model::bananas::ClientVariant;
use meshwork_model::route::routes::Routes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Foreign;
use crate::protocol::handlers::Handlers;
use meshwork_worker::Identity;

/// Pause between two scans for foreign jobs on queues without a route.
const PLAIN_RESTS: Duration = Duration::from_secs(1);

/// The protocol of Bananas, for one worker.
pub(super) struct BananasProtocol {
    pub(super) broker: Bananas,
    pub(super) identity: Identity,
    pub(super) handlers: Handlers,
    pub(super) routes: Routes,
    /// Queues from which it claims; they never change.
    pub(super) lists: watch::Sender<Arc<Vec<String>>>,
    pub(super) max_retries: u32,
    pub(super) foreign: Foreign,
    pub(super) peer: ClientVariant,
    pub(super) rescue_orphans_after: Option<Duration>,
    pub(super) scheduler: bool,
    /// Time of the next scan for foreign jobs on queues without a route. While it is set, nothing is claimed from these
    /// queues.
    pub(super) rests: watch::Sender<Option<Instant>>,
    /// Position of the scan in each queue without a route.
    pub(super) behind: tokio::sync::Mutex<Vec<usize>>,
}

impl BananasProtocol {
    /// Stops claims from queues without a route, since a foreign job stays there.
    pub(super) fn let_plain_rest(&self) {
        self.rests.send_replace(Some(Instant::now() + PLAIN_RESTS));
    }

    /// Resumes claims from queues without a route.
    pub(super) fn end_plain_rest(&self) {
        self.rests.send_replace(None);
    }

    /// Returns true if a scan for foreign jobs is due.
    pub(super) fn looks_at_left(&self) -> bool {
        self.rests.borrow().is_some_and(|at| at <= Instant::now())
    }

    /// Returns true if nothing is claimed from a queue now.
    pub(super) fn rests(&self, list: &str) -> bool {
        self.rests.borrow().is_some() && self.broker.keys().is_plain(list)
    }

    /// Returns the queues without a route.
    pub(super) fn plain_lists(&self) -> Vec<String> {
        let (keys, lists) = (self.broker.keys(), Arc::clone(&self.lists.borrow()));
        let plain = lists.iter().filter(|list| keys.is_plain(list));
        plain.cloned().collect()
    }

    /// Returns the queues in the order of a claim, after `claims` claims that returned jobs.
    pub(super) fn lists(&self, claims: usize) -> Vec<String> {
        let routes = self.routes.in_turn(claims);
        let mut lists = self.broker.keys().lists(&routes);
        lists.retain(|list| !self.rests(list));
        lists
    }
}
