//! State shared by all parts of a running worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::dedicated_thread::Host;
use super::health::HealthSource;
use super::in_flight::InFlight;
use super::logfile::LogFolders;
use super::meter::Meter;
use super::protocol::{Protocol, Queues};
use super::readiness::{Faults, Readiness};
use crate::capacity::demand::Demand;
use crate::capacity::slots::Seat;
use meshwork_runtime::lease::Moment;

/// A registration that the server has confirmed.
#[derive(Debug)]
pub(super) struct Registered<Q> {
    /// Time until which the server certainly counts the worker as alive.
    pub(super) until: Moment,
    /// Registered queues.
    pub(super) queues: Arc<Q>,
    /// Queues that the server refused.
    pub(super) refused: Arc<[String]>,
}

impl<Q> Clone for Registered<Q> {
    fn clone(&self) -> Self {
        Self {
            until: self.until,
            queues: Arc::clone(&self.queues),
            refused: Arc::clone(&self.refused),
        }
    }
}

/// State shared by all parts of a running worker.
pub struct Engine<P: Protocol> {
    pub(super) protocol: P,
    pub(super) config: Config,
    pub(super) log_folders: Arc<LogFolders>,
    pub(super) in_flight: InFlight<P::Job>,
    pub(super) demand: Arc<Demand>,
    /// Its share of slots that it has together with other engines.
    pub(super) seat: Option<Seat>,
    /// The thread of the heartbeat; none for one of its own.
    pub(super) host: Option<Arc<Host>>,
    pub(super) meter: Meter,
    /// Runtimes that cannot start runs.
    pub(super) readiness: Readiness,
    /// Slots of running jobs, for protocols whose jobs come without a claim ([`Protocol::PUSH_DELIVERY`]).
    pub(super) slots: Semaphore,
    pub(super) registered: watch::Sender<Option<Registered<P::Queues>>>,
    /// True if the worker is registered for its queues, or will be. Locked during a renewal: a renewal after the
    /// deregistration would register the worker again.
    pub(super) listening: tokio::sync::Mutex<bool>,
    /// Commands that the worker's user may not send, although its calls need them.
    pub(super) lacks: watch::Sender<Vec<&'static str>>,
    /// True if rights are to be checked at the next heartbeat: at the start, and after a call that was denied.
    rights_due: AtomicBool,
    /// Cancelled when the worker claims no more jobs: it is quiet or shuts down.
    pub(super) stop: CancellationToken,
    /// Cancelled when a shutdown was requested.
    pub(super) stop_requested: CancellationToken,
}

/// The parts of an engine that others share.
#[derive(Debug)]
pub struct SharedParts {
    /// Wakes the fetcher when ids were found.
    pub demand: Arc<Demand>,
    /// The share of slots.
    pub seat: Seat,
    /// The thread of the heartbeat.
    pub host: Arc<Host>,
}

impl<P: Protocol> Engine<P> {
    /// The same engine with parts that others share.
    pub fn sharing(mut self, parts: SharedParts) -> Self {
        self.demand = parts.demand;
        self.seat = Some(parts.seat);
        self.host = Some(parts.host);
        self
    }

    /// Creates an engine of checked settings that shares nothing.
    pub fn new(protocol: P, config: Config, log_folders: LogFolders) -> Self {
        Self {
            meter: Meter::new(config.concurrency),
            slots: Semaphore::new(config.concurrency),
            seat: None,
            host: None,
            readiness: Readiness::default(),
            protocol,
            config,
            log_folders: Arc::new(log_folders),
            in_flight: InFlight::default(),
            demand: Arc::new(Demand::default()),
            registered: watch::Sender::new(None),
            lacks: watch::Sender::default(),
            rights_due: AtomicBool::new(true),
            listening: tokio::sync::Mutex::new(true),
            stop: CancellationToken::new(),
            stop_requested: CancellationToken::new(),
        }
    }

    /// Returns the registration if it outlives a blocking read.
    pub(super) fn registration(&self) -> Option<Registered<P::Queues>> {
        let registered = self.registered.borrow();
        let known = registered.as_ref()?;
        (known.until > self.config.clock.now() + self.config.wait()).then(|| known.clone())
    }

    /// Returns the end of the registration; the current time if there is none.
    pub(super) fn registered_until(&self) -> Moment {
        let until = self.registered.borrow().as_ref().map(|known| known.until);
        until.unwrap_or_else(|| self.config.clock.now())
    }

    /// Returns true if a blocking read of a queue may be sent: a slot is free, the last claim found the queues empty,
    /// this queue is neither blocked nor paused, and the registration outlives the read.
    pub(super) fn may_wait(&self, queue: &str) -> bool {
        let takes = |known: Registered<P::Queues>| {
            known.queues.names().iter().any(|name| name == queue)
                && !known.refused.iter().any(|name| name == queue)
        };
        self.demand.is_demanded(queue)
            && !self.is_paused(queue)
            && self.registration().is_some_and(takes)
    }

    /// Returns true if the jobs of a queue are not claimed, since their runtime cannot start them.
    pub(super) fn is_paused(&self, queue: &str) -> bool {
        !self.readiness.is_whole() && self.readiness.is_paused(&self.protocol.runtime(queue))
    }

    /// Returns the queues whose jobs are not claimed.
    pub(super) fn paused(&self) -> Vec<String> {
        if self.readiness.is_whole() {
            return Vec::new();
        }
        let queues = Arc::clone(&self.protocol.queues().borrow());
        let paused = queues.names().iter().filter(|queue| self.is_paused(queue));
        paused.cloned().collect()
    }

    /// Returns true if rights are to be checked now: at the start, after a call that was denied, and while some are
    /// missing.
    pub(super) fn take_rights_due(&self) -> bool {
        self.rights_due.swap(false, Ordering::Relaxed) || !self.lacks.borrow().is_empty()
    }

    /// Records the rights that are missing, and logs a change.
    pub(super) fn note_rights(&self, lacks: Option<Vec<&'static str>>) {
        let Some(lacks) = lacks else { return };
        let worker = self.protocol.worker();
        self.lacks.send_if_modified(|before| {
            let changed = *before != lacks;
            if changed && lacks.is_empty() {
                tracing::warn!(worker, "the user of the server has all rights again");
            } else if changed {
                let rights = lacks.join(" ");
                tracing::error!(
                    worker,
                    rights,
                    "the user of the server lacks rights; jobs may wait"
                );
            }
            *before = lacks;
            changed
        });
    }

    /// Records the failure of a call.
    pub(super) fn failed(
        &self,
        (operation, outage): (&'static str, &'static str),
        error: &meshwork_broker::Error,
    ) {
        if error.is_denied() {
            self.rights_due.store(true, Ordering::Relaxed);
        }
        self.meter.failed(operation, error);
        self.protocol.outages().failed(outage, error);
    }
}

impl<P: Protocol> HealthSource for Engine<P> {
    fn name(&self) -> &str {
        self.protocol.worker()
    }

    fn busy(&self) -> usize {
        self.in_flight.count()
    }

    fn is_registered(&self) -> bool {
        let registered = self.registered.borrow();
        let known = registered.as_ref().filter(|it| it.refused.is_empty());
        known.is_some_and(|known| known.until > self.config.clock.now())
    }

    fn lacks(&self) -> Vec<&'static str> {
        self.lacks.borrow().clone()
    }

    fn faults(&self) -> Faults {
        self.readiness.faults()
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}
