//! Queues and workers as the last scan of all keys found them. One slow scan in the background serves all callers, so that
//! the cost of a call does not grow with the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use meshwork::view::QueueView;
use meshwork::{Client, WorkerInfo};
use meshwork_broker::QueueDepth;
use tokio::sync::watch;

/// Pause between two scans.
const EVERY: Duration = Duration::from_secs(5);
/// Longest wait for the first scan.
const FIRST: Duration = Duration::from_secs(10);

/// Result of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) queues: Vec<QueueView>,
    pub(crate) workers: Vec<WorkerInfo>,
    /// Jobs of each queue that are in none of its lists.
    pub(crate) depths: BTreeMap<String, QueueDepth>,
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
    scanned: watch::Sender<u64>,
}

impl Census {
    pub(crate) fn new() -> Self {
        Self {
            last: Mutex::default(),
            scanned: watch::Sender::new(0),
        }
    }

    /// Scans again and again, until it is dropped. A failed scan is repeated later.
    pub(crate) async fn run(&self, client: &Client) -> ! {
        loop {
            match scan(client).await {
                Ok(found) => {
                    let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                    *last = Some(Arc::new(found));
                    drop(last);
                    self.scanned.send_modify(|count| *count += 1);
                }
                // The age of the last scan shows it, and the store's outage is logged where it is used.
                Err(error) => tracing::debug!(%error, "scan for the API failed"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Returns the last scan; waits for the first one.
    pub(crate) async fn found(&self) -> Option<Arc<Found>> {
        let mut scanned = self.scanned.subscribe();
        let first = scanned.wait_for(|count| *count > 0);
        let _ = tokio::time::timeout(FIRST, first).await;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}

async fn scan(client: &Client) -> Result<Found, meshwork::Error> {
    let at = Instant::now();
    let queues = client.queues().await?;
    let workers = client.workers().await?;
    let depths = client.broker().depths_beside_lists().await?;
    Ok(Found {
        queues: queues.iter().map(QueueView::from).collect(),
        workers,
        depths,
        at,
    })
}
