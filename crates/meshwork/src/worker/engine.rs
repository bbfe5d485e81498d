//! What all parts of a running worker share.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::demand::Demand;
use super::health::HealthSource;
use super::in_flight::InFlight;
use super::logfile::LogFolders;
use super::meter::Meter;
use super::protocol::Protocol;

/// A registration that the server knows of.
#[derive(Debug)]
pub(super) struct Registered<Q> {
    /// Until when the server counts the worker as alive.
    pub(super) until: Instant,
    /// The queues for which it is registered.
    pub(super) queues: Arc<Q>,
}

impl<Q> Clone for Registered<Q> {
    fn clone(&self) -> Self {
        let (until, queues) = (self.until, Arc::clone(&self.queues));
        Self { until, queues }
    }
}

/// What all parts of a running worker share.
pub(crate) struct Engine<P: Protocol> {
    pub(super) protocol: P,
    pub(super) config: Config,
    pub(super) log_folders: Arc<LogFolders>,
    pub(super) in_flight: InFlight<P::Job>,
    pub(super) demand: Demand,
    pub(super) meter: Meter,
    pub(super) registered: watch::Sender<Option<Registered<P::Queues>>>,
    /// Whether the worker is, or is to be, registered for its queues. Locked while a renewal is on its way: one that lands
    /// after the worker left would register it again.
    pub(super) listening: tokio::sync::Mutex<bool>,
    /// Cancelled when the worker takes no more jobs.
    pub(super) stop: CancellationToken,
}

impl<P: Protocol> Engine<P> {
    pub(crate) fn new(protocol: P, config: Config, log_folders: LogFolders) -> Self {
        Self {
            meter: Meter::new(config.concurrency),
            protocol,
            config,
            log_folders: Arc::new(log_folders),
            in_flight: InFlight::default(),
            demand: Demand::new(),
            registered: watch::Sender::new(None),
            listening: tokio::sync::Mutex::new(true),
            stop: CancellationToken::new(),
        }
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
        self.in_flight.len()
    }

    fn alive_until(&self) -> Option<Instant> {
        self.registered.borrow().as_ref().map(|known| known.until)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }
}
