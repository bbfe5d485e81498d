//! What the parts of a service share: what it was started with, and the messages that it has in hand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::nooble::{Nooble, Received, Source};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::Client;
use super::handler::Handlers;
use super::tidy::Ends;
use crate::worker::config::{Config, HEARTBEATS};
use crate::worker::{HealthSource, Meter};

/// So often it is looked, a renewal apart, for what came when a connection broke: a wait that the server knows of goes on
/// for as long as one renewal lasts. Of a list, what is unknown twice is taken; of a stream, what was not renewed for a
/// lease, and the last look may be without a slot.
const DOUBTS: u32 = HEARTBEATS + 3;

/// What a service was started with.
pub(super) struct Setup {
    pub(super) broker: Nooble,
    pub(super) client: Client,
    pub(super) worker: String,
    pub(super) queues: Vec<Arc<Queue>>,
    pub(super) config: Config,
    pub(super) runs: u32,
    pub(super) call_runs: u32,
    pub(super) pause: Duration,
    pub(super) longest_pause: Duration,
    pub(super) adopt: Option<Duration>,
    pub(super) unasked: bool,
}

/// A queue that a service takes from.
pub(super) struct Queue {
    pub(super) source: Arc<Source>,
    /// Whether callbacks come here.
    pub(super) callbacks: bool,
    /// What deals with what comes here, by its type.
    pub(super) handlers: Arc<Handlers>,
    /// How often it is still to be looked whether something was given to this service that it knows nothing of.
    doubts: AtomicU32,
    /// Until when the server counts this service as one that takes from it.
    alive: watch::Sender<Option<Instant>>,
}

impl Queue {
    pub(super) fn new(source: Arc<Source>, callbacks: bool, handlers: Arc<Handlers>) -> Self {
        Self {
            source,
            callbacks,
            handlers,
            doubts: AtomicU32::new(0),
            alive: watch::Sender::new(None),
        }
    }

    /// The server counts this service as one that takes from it.
    pub(super) fn is_kept(&self, until: Instant) {
        self.alive.send_replace(Some(until));
    }

    /// For how long, if it were not renewed any more.
    pub(super) fn known_for(&self) -> Known {
        Known(*self.alive.borrow())
    }

    /// A connection broke, and a message may have been on its way; or a report was not taken, or a message not handed back,
    /// and it stays.
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
}

/// A message in hand, and how its run is stopped.
pub(super) struct InHand {
    pub(super) received: Received,
    pub(super) lost: CancellationToken,
    /// Told when its handler goes on after its first step, and when its run is over.
    pub(super) begun: Notify,
    number: u64,
}

impl InHand {
    /// What tells at its end, however that comes, that the run is over.
    pub(super) fn begins(&self) -> impl Drop {
        Begun(self)
    }
}

struct Begun<'a>(&'a InHand);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.begun.notify_one();
    }
}

/// Until when what is asked for now is this service's for certain.
pub(super) struct Known(Option<Instant>);

impl Known {
    /// What came, unless it is late: then this process was stopped, or the answer held up, and others may have taken it
    /// over.
    pub(super) fn in_time<T>(
        &self,
        verb: &'static str,
        came: T,
        is_nothing: impl FnOnce(&T) -> bool,
    ) -> Result<T, Error> {
        if is_nothing(&came) || self.0.is_some_and(|until| Instant::now() < until) {
            return Ok(came);
        }
        Err(Error::timed_out(verb))
    }
}

/// A service that runs.
pub(super) struct State {
    pub(super) setup: Setup,
    pub(super) slots: Arc<Semaphore>,
    in_hand: Mutex<HashMap<u64, Arc<InHand>>>,
    numbers: AtomicU64,
    /// Takes no more.
    pub(super) stop: CancellationToken,
    /// The runs.
    pub(super) running: TaskTracker,
    /// Its metrics.
    pub(super) meter: Meter,
    /// Those that are over, as far as something is left to do for them.
    pub(super) over: Arc<Ends>,
}

impl State {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            meter: Meter::new(setup.config.concurrency),
            slots: Arc::new(Semaphore::new(setup.config.concurrency)),
            setup,
            in_hand: Mutex::default(),
            numbers: AtomicU64::new(0),
            stop: CancellationToken::new(),
            running: TaskTracker::new(),
            over: Arc::default(),
        }
    }

    /// Between two renewals; as long all waits for messages of a queue last, which is shorter than what the worker is
    /// registered for.
    pub(super) fn beat(&self) -> Duration {
        self.setup.config.heartbeat_interval()
    }

    fn messages(&self) -> MutexGuard<'_, HashMap<u64, Arc<InHand>>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message is this service's.
    pub(super) fn take(&self, received: Received) -> Arc<InHand> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let taken = Arc::new(InHand {
            received,
            lost: CancellationToken::new(),
            begun: Notify::new(),
            number,
        });
        self.messages().insert(number, Arc::clone(&taken));
        taken
    }

    /// A message is dealt with.
    pub(super) fn done(&self, in_hand: &InHand) {
        self.messages().remove(&in_hand.number);
    }

    /// The messages in hand, the newest first: released in this order, the oldest is the next one again.
    pub(super) fn all(&self) -> Vec<Arc<InHand>> {
        let mut all: Vec<_> = self.messages().values().cloned().collect();
        all.sort_unstable_by_key(|in_hand| std::cmp::Reverse(in_hand.number));
        all
    }

    /// Ids and proofs of what is in hand of a queue.
    pub(super) fn held(&self, source: &Source) -> Vec<(String, u64)> {
        let messages = self.messages();
        let of = messages.values().map(|one| &one.received);
        of.filter(|one| *one.source == *source)
            .map(|one| (one.id.clone(), one.given))
            .collect()
    }

    /// What of these messages of a queue this service knows nothing of.
    pub(super) fn unknown(&self, source: &Source, given: Vec<Received>) -> Vec<Received> {
        let messages = self.messages();
        let known = messages.values().map(|one| &one.received);
        let mut known: Vec<_> = known.filter(|one| *one.source == *source).collect();
        let mut unknown = given;
        unknown.retain(|one| {
            let at = known.iter().position(|it| it.bytes() == one.bytes());
            // Of two that are alike, each stands for one.
            at.map(|at| known.swap_remove(at)).is_none()
        });
        unknown
    }

    /// Ends the runs of messages of a queue that belong to this service no more. Returns their number.
    pub(super) fn lose(&self, source: &Source, ids: &[String]) -> usize {
        let mut lost = 0;
        for one in self.messages().values() {
            if *one.received.source == *source && ids.contains(&one.received.id) {
                lost += usize::from(!one.lost.is_cancelled());
                one.lost.cancel();
            }
        }
        lost
    }

    /// A call over a connection has failed.
    pub(super) fn failed(&self, operation: &'static str, outage: &'static str, error: &Error) {
        self.meter.failed(operation, error);
        self.setup.broker.outages().failed(outage, error);
    }

    /// What is in hand of a queue may be more than what is known here: it is looked for.
    pub(super) fn doubt(&self, source: &Source) {
        let of = |queue: &&Arc<Queue>| *queue.source == *source;
        if let Some(queue) = self.setup.queues.iter().find(of) {
            queue.doubt();
        }
    }

    fn is_long(&self, until: Option<Instant>) -> bool {
        until.is_some_and(|it| it > Instant::now() + self.beat())
    }

    /// Whether the server knows that this service takes from a queue for longer than waits last.
    pub(super) fn is_known(&self, queue: &Queue) -> bool {
        self.is_long(*queue.alive.borrow())
    }

    /// Returns when it does. False when the service stops.
    pub(super) async fn known(&self, queue: &Queue) -> bool {
        if self.is_known(queue) {
            return true;
        }
        let mut alive = queue.alive.subscribe();
        tokio::select! {
            biased;
            // The sender lives as long as the queue.
            _ = alive.wait_for(|until| self.is_long(*until)) => true,
            () = self.stop.cancelled() => false,
        }
    }

    /// Returns when it takes no more, and nothing runs any more.
    pub(super) async fn ended(&self) {
        self.stop.cancelled().await;
        self.running.close();
        self.running.wait().await;
    }

    /// A slot; None when the service stops.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        if self.stop.is_cancelled() {
            return None;
        }
        match self.free_slot() {
            Some(slot) => Some(slot),
            None => tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
            },
        }
    }

    fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// A slot for what a queue may have, and with it others that are free, so many in all; None when the service stops. A
    /// slot may be long in coming, and none is kept from other queues while the server does not know the service.
    pub(super) async fn free(
        &self,
        queue: &Queue,
        most: usize,
    ) -> Option<Vec<OwnedSemaphorePermit>> {
        let first = loop {
            if !self.known(queue).await {
                return None;
            }
            let slot = self.slot().await?;
            if self.is_known(queue) {
                break slot;
            }
        };
        let others = std::iter::from_fn(|| self.free_slot()).take(most.saturating_sub(1));
        Some(std::iter::once(first).chain(others).collect())
    }
}

impl HealthSource for State {
    fn name(&self) -> &str {
        &self.setup.worker
    }

    fn busy(&self) -> usize {
        self.messages().len()
    }

    /// The server counts it as alive while it takes from all its queues.
    fn alive_until(&self) -> Option<Instant> {
        let queues = self.setup.queues.iter();
        let alive = queues.map(|queue| *queue.alive.borrow());
        alive.min().flatten()
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}
