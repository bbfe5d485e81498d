//! State shared by all parts of a running worker.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::demand::Demand;
use super::health::HealthSource;
use super::in_flight::InFlight;
use super::logfile::LogFolders;
use super::meter::Meter;
use super::protocol::{Protocol, Queues};

/// A registration that the server knows of.
#[derive(Debug)]
pub(super) struct Registered<Q> {
    /// Until when the server counts the worker as alive.
    pub(super) until: Instant,
    /// The queues for which it is registered.
    pub(super) queues: Arc<Q>,
    /// Those of them that the server refused.
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
pub(crate) struct Engine<P: Protocol> {
    pub(super) protocol: P,
    pub(super) config: Config,
    pub(super) log_folders: Arc<LogFolders>,
    pub(super) in_flight: InFlight<P::Job>,
    pub(super) demand: Demand,
    pub(super) meter: Meter,
    /// The slots that runs hold, where jobs come without a claim ([`Protocol::TAKES`]).
    pub(super) slots: Semaphore,
    pub(super) registered: watch::Sender<Option<Registered<P::Queues>>>,
    /// True if the worker is, or will be, registered for its queues. Locked during a renewal: one that lands after
    /// deregistration would register it again.
    pub(super) listening: tokio::sync::Mutex<bool>,
    /// Cancelled when the worker takes no more jobs: it is quiet or shuts down.
    pub(super) stop: CancellationToken,
    /// Cancelled when somebody has requested the shutdown.
    pub(super) stop_requested: CancellationToken,
}

impl<P: Protocol> Engine<P> {
    pub(crate) fn new(protocol: P, config: Config, log_folders: LogFolders) -> Self {
        Self {
            meter: Meter::new(config.concurrency),
            slots: Semaphore::new(config.concurrency),
            protocol,
            config,
            log_folders: Arc::new(log_folders),
            in_flight: InFlight::default(),
            demand: Demand::new(),
            registered: watch::Sender::new(None),
            listening: tokio::sync::Mutex::new(true),
            stop: CancellationToken::new(),
            stop_requested: CancellationToken::new(),
        }
    }

    /// The registration, if it lasts for longer than a wait.
    pub(super) fn registration(&self) -> Option<Registered<P::Queues>> {
        let registered = self.registered.borrow();
        let known = registered.as_ref()?;
        (known.until > Instant::now() + self.config.wait()).then(|| known.clone())
    }

    /// True if a wait for a queue may be sent: a slot is free, the queues were found empty, this one is not blocked,
    /// and the registration outlives the wait.
    pub(super) fn may_wait(&self, queue: &str) -> bool {
        let takes = |known: Registered<P::Queues>| {
            known.queues.names().iter().any(|name| name == queue)
                && !known.refused.iter().any(|name| name == queue)
        };
        self.demand.is_demanded(queue) && self.registration().is_some_and(takes)
    }

    /// A call over a connection has failed.
    pub(super) fn failed(
        &self,
        (operation, outage): (&'static str, &'static str),
        error: &meshwork_broker::Error,
    ) {
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

    fn alive_until(&self) -> Option<Instant> {
        let registered = self.registered.borrow();
        let known = registered.as_ref().filter(|it| it.refused.is_empty());
        known.map(|known| known.until)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}
