//! Queues and workers as the last scan of all keys found them. One scan in the background serves all callers, so that
//! the cost of a call does not grow with the store. Nothing is scanned without calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use meshwork::view::QueueView;
use meshwork::{Client, WorkerInfo};
use meshwork_broker::QueueDepth;
use tokio::sync::watch;

/// Shortest pause between two scans.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause after a scan in times of its duration, so that scans of a large store take a small share of its time.
const SHARE: u32 = 4;
/// Age at which a scan is too old to be returned, if a newer one can be had.
const STALE: Duration = Duration::from_secs(30);
/// Longest wait for a scan.
const LONGEST: Duration = Duration::from_secs(10);

/// Result of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) queues: Vec<QueueView>,
    pub(crate) workers: Vec<WorkerInfo>,
    /// Jobs of each queue that are in none of its lists.
    pub(crate) depths: BTreeMap<String, QueueDepth>,
    /// True if there are more running or delayed jobs than were counted.
    pub(crate) is_partial: bool,
    at: Instant,
}

impl Found {
    /// Age of the scan in milliseconds.
    pub(crate) fn age_ms(&self) -> u64 {
        u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The last scan.
#[derive(Debug)]
pub(crate) struct Census {
    last: Mutex<Option<Arc<Found>>>,
    /// Number of calls that wanted a scan, and of scans.
    wanted: watch::Sender<u64>,
    scanned: watch::Sender<u64>,
}

impl Census {
    pub(crate) fn new() -> Self {
        Self {
            last: Mutex::default(),
            wanted: watch::Sender::new(0),
            scanned: watch::Sender::new(0),
        }
    }

    /// Scans while calls need it, until it is dropped. A failed scan is repeated by the next call.
    pub(crate) async fn run(&self, client: &Client) -> ! {
        let mut wanted = self.wanted.subscribe();
        let mut served = 0;
        loop {
            // The sender lives as long as this census, so that this is no error.
            let next = wanted.wait_for(|count| *count > served).await;
            served = next.map_or(served, |count| *count);
            let began = Instant::now();
            match scan(client).await {
                Ok(found) => {
                    *self.lock() = Some(Arc::new(found));
                    self.scanned.send_modify(|count| *count += 1);
                }
                // The age of the last scan shows it, and the store's outage is logged where it is used.
                Err(error) => tracing::debug!(%error, "scan for the API failed"),
            }
            tokio::time::sleep(PAUSE.max(began.elapsed() * SHARE)).await;
        }
    }

    /// Returns the last scan, and requests the next one. Waits for that if the last one is too old.
    pub(crate) async fn found(&self) -> Option<Arc<Found>> {
        let mut scanned = self.scanned.subscribe();
        self.wanted.send_modify(|count| *count += 1);
        let last = self.lock().clone();
        if last.as_ref().is_some_and(|it| it.at.elapsed() < STALE) {
            return last;
        }
        let _ = tokio::time::timeout(LONGEST, scanned.changed()).await;
        self.lock().clone()
    }

    /// Returns the last scan for a page, which requests the next one only after [`STALE`].
    pub(crate) async fn found_for_page(&self) -> Option<Arc<Found>> {
        match self.last() {
            Some(last) if last.at.elapsed() < STALE => Some(last),
            Some(last) if last.at.elapsed() < 2 * STALE => {
                self.wanted.send_modify(|count| *count += 1);
                Some(last)
            }
            _ => self.found().await,
        }
    }

    /// Returns the last scan, if there was one, and requests none.
    pub(crate) fn last(&self) -> Option<Arc<Found>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Found>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn scan(client: &Client) -> Result<Found, meshwork::Error> {
    let at = Instant::now();
    let queues = client.queues().await?;
    let workers = client.workers().await?;
    let (depths, is_partial) = client.broker().depths_beside_lists().await?;
    Ok(Found {
        queues: queues.iter().map(QueueView::from).collect(),
        workers,
        depths,
        is_partial,
        at,
    })
}
