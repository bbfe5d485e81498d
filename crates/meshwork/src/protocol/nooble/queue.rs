//! Queue: a stream or a list that a service consumes, and the search for deliveries that the service does not know of.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_broker::nooble::{Received, Source};

use super::handler::Handlers;
use crate::worker::config::HEARTBEATS;

/// Number of searches, one heartbeat apart, for messages delivered while a connection broke: a wait that the server
/// knows of goes on for less than two renewals. From a list, a message unknown twice is taken; from a stream, one not
/// renewed for a lease. The last search may lack a slot.
const DOUBTS: u32 = HEARTBEATS + 4;

/// A queue that a service consumes.
pub(super) struct Queue {
    pub(super) source: Arc<Source>,
    /// True for queues of callbacks.
    pub(super) callbacks: bool,
    /// Handlers of its messages, by type.
    pub(super) handlers: Arc<Handlers>,
    /// True if the last call returned as many messages as requested: more may be there.
    pub(super) more: AtomicBool,
    /// Remaining searches for unknown deliveries.
    doubts: AtomicU32,
    looks: Mutex<Looks>,
}

/// State of the search for messages of dead services.
#[derive(Default)]
pub(super) struct Looks {
    /// Position of the next search in a stream; none: its beginning.
    pub(super) from: Option<String>,
    /// Messages unknown to this service in the last search.
    pub(super) suspects: Vec<Received>,
}

/// Guard of a call that delivers messages: if it fails or is dropped, deliveries may be unknown.
pub(super) struct Giving<'a>(Option<&'a Queue>);

impl Giving<'_> {
    /// Marks all deliveries as known.
    pub(super) fn all_known(mut self) {
        self.0 = None;
    }
}

impl Drop for Giving<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.0 {
            queue.doubt();
        }
    }
}

impl Queue {
    pub(super) fn new(source: Arc<Source>, callbacks: bool, handlers: Arc<Handlers>) -> Self {
        Self {
            source,
            callbacks,
            handlers,
            more: AtomicBool::new(true),
            doubts: AtomicU32::new(0),
            looks: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.source.queue()
    }

    /// A call that gives messages begins.
    pub(super) fn gives(&self) -> Giving<'_> {
        Giving(Some(self))
    }

    /// A report was not taken, or a message not released: it still belongs to this service.
    pub(super) fn doubt(&self) {
        self.doubts.store(DOUBTS, Ordering::Relaxed);
    }

    /// True if a search is due.
    pub(super) fn is_in_doubt(&self) -> bool {
        let one_less = |doubts: u32| doubts.checked_sub(1);
        let looked = self
            .doubts
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        looked.is_ok()
    }

    pub(super) fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
