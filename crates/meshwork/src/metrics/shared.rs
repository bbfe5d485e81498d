//! Cached metrics of the store, read at most once in [`FRESH`].

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::{self, Bananas};
use meshwork_broker::{Broker, Error, KnownQueues, Outages, Stats};
use meshwork_model::keys::hero::JobKeys;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::context::{MeshFigures, Node};

/// Time for which a reading is reused, so that several scrapers cost no more than one. Scrapers usually read every 15
/// s.
pub const FRESH: Duration = Duration::from_secs(1);
/// Longest time of a reading. Scrapers give up after 10 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time of a complete scan for queues among millions of keys.
const LONG: Duration = Duration::from_secs(300);

/// Reader of the store's metrics.
#[derive(Debug)]
pub struct Shared {
    broker: Broker,
    node: Node,
    bananas: Option<Bananas>,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    known: KnownQueues,
    read: Option<(Instant, Reading)>,
    reads: u64,
    /// True if the user may not read the figures of other nodes. Each further try would be in the server's log.
    mesh_is_denied: bool,
}

/// A reading, and its duration.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// `None` if the store did not answer.
    pub(crate) stats: Option<Arc<Stats>>,
    /// `None` if the store did not answer, or metrics of Bananas are not included.
    pub(crate) bananas: Option<Arc<bananas::Stats>>,
    /// Other nodes; `None` if the store did not answer, or the user may not read them.
    pub(crate) mesh: Option<Arc<MeshFigures>>,
    pub(crate) took: Duration,
}

impl Shared {
    pub(crate) fn new(broker: Broker, bananas: Option<Bananas>) -> Self {
        Self {
            node: Node::of(&broker),
            broker,
            bananas,
            last: Mutex::default(),
        }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn keys(&self) -> &JobKeys {
        self.broker.keys()
    }

    /// Returns the metrics, at most [`FRESH`] old when the reading begins.
    pub(crate) async fn read(&self, whole: bool) -> Reading {
        let mut last = self.last.lock().await;
        if let Some((at, reading)) = &last.read
            && at.elapsed() < FRESH
        {
            return reading.clone();
        }
        let began = Instant::now();
        let read = self.broker.stats(&mut last.known, whole);
        let outages = self.broker.outages();
        let stats = within(outages, if whole { LONG } else { PATIENCE }, read).await;
        let bananas = match &self.bananas {
            Some(bananas) => within(outages, PATIENCE, bananas.stats()).await,
            None => None,
        };
        // One wait for a server that does not answer: scrapers give up.
        let mesh = match last.mesh_is_denied || stats.is_none() {
            true => None,
            false => match tokio::time::timeout(PATIENCE, self.node.mesh_figures()).await {
                Ok(Ok(mesh)) => Some(Arc::new(mesh)),
                Ok(Err(error)) => {
                    last.mesh_is_denied = error.is_no_right();
                    None
                }
                Err(_) => None,
            },
        };
        let reading = Reading {
            stats,
            bananas,
            mesh,
            took: began.elapsed(),
        };
        last.reads += 1;
        last.read = Some((Instant::now(), reading.clone()));
        reading
    }

    /// Returns true if the store answered the last reading. Repeats a reading older than [`FRESH`].
    #[boxed]
    pub async fn is_up(&self) -> bool {
        self.read(false).await.stats.is_some()
    }

    /// Returns the number of readings.
    #[boxed]
    pub async fn reads(&self) -> u64 {
        self.last.lock().await.reads
    }
}

/// Returns the reading; `None` after a timeout or an error.
async fn within<T>(
    outages: &Outages,
    patience: Duration,
    read: impl Future<Output = Result<T, Error>>,
) -> Option<Arc<T>> {
    let read = tokio::time::timeout(patience, read).await;
    let read = read.unwrap_or_else(|_| Err(Error::timed_out("stats")));
    outages.observe("stats", read).ok().map(Arc::new)
}
