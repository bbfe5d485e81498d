//! Queue: a stream or a list from which a service takes messages, and the search for deliveries that it does not know.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_broker::nooble::{Received, Source};

use super::handler::Handlers;
use meshwork_worker::HEARTBEATS;

/// Number of searches, one heartbeat apart, for messages that were delivered while a connection broke. A blocking read
/// may continue on the server for less than two renewals. A message of a list is taken if it is unknown twice, one of a
/// stream if it was not renewed for a lease. The last search may find no free slot.
const DOUBTS: u32 = HEARTBEATS + 4;

/// A queue from which a service takes messages.
pub(super) struct Queue {
    pub(super) source: Arc<Source>,
    /// True for queues of callbacks.
    pub(super) callbacks: bool,
    /// Handlers of its messages, by type.
    pub(super) handlers: Arc<Handlers>,
    /// True if the last call returned as many messages as requested: more may be there.
    pub(super) more: AtomicBool,
    /// Number of remaining searches for unknown deliveries.
    doubts: AtomicU32,
    looks: Mutex<Looks>,
}

/// State of the search for messages of dead services.
#[derive(Default)]
pub(super) struct Looks {
    /// Position of the next search in a stream; `None` for its beginning.
    pub(super) from: Option<String>,
    /// Messages unknown to this service in the last search.
    pub(super) suspects: Vec<Received>,
}

/// Guard of a call that delivers messages. If the call fails or is dropped, there may be unknown deliveries.
pub(super) struct Giving<'a>(Option<&'a Queue>);

impl Giving<'_> {
    /// Records that all deliveries are known.
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

    /// Begins a call that delivers messages.
    pub(super) fn gives(&self) -> Giving<'_> {
        Giving(Some(self))
    }

    /// Records that a report was refused or a message was not released, so it still belongs to this service.
    pub(super) fn doubt(&self) {
        self.doubts.store(DOUBTS, Ordering::Relaxed);
    }

    /// Returns true if a search is due.
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
