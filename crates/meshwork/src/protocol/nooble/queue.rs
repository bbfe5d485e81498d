//! Queue: a stream or a list that a service takes from, and the doubt whether all is known that it was given from there.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_broker::nooble::{Received, Source};

use super::handler::Handlers;
use crate::worker::config::HEARTBEATS;

/// So often it is looked, a renewal apart, for what came when a connection broke: a wait that the server knows of goes on
/// for less than two renewals. Of a list, what is unknown twice is taken; of a stream, what was not renewed for a lease, and
/// the last look may be without a slot.
const DOUBTS: u32 = HEARTBEATS + 4;

/// A queue that a service takes from.
pub(super) struct Queue {
    pub(super) source: Arc<Source>,
    /// Whether callbacks come here.
    pub(super) callbacks: bool,
    /// The handlers of what comes here, by its type.
    pub(super) handlers: Arc<Handlers>,
    /// Whether the last call brought all that was wanted, so that more may be there.
    pub(super) more: AtomicBool,
    /// How often it is still to be looked whether something was given to this service that it knows nothing of.
    doubts: AtomicU32,
    looks: Mutex<Looks>,
}

/// The state of the looks after messages of services that are gone.
#[derive(Default)]
pub(super) struct Looks {
    /// Where in a stream it looks next; at first at its beginning.
    pub(super) from: Option<String>,
    /// Messages that this service knew nothing of when it last looked.
    pub(super) suspects: Vec<Received>,
}

/// A call that gives messages: if it fails, or is dropped, some may have come that nobody knows of.
pub(super) struct Giving<'a>(Option<&'a Queue>);

impl Giving<'_> {
    /// All that came is known.
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

    /// Whether to look.
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
