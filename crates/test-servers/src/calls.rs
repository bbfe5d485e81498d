//! Number of calls of a server by all clients, from `MONITOR`, without those of scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::task::AbortOnDropHandle;

/// Counts the calls of all clients of one server, until it is dropped.
#[derive(Debug)]
pub struct Calls {
    count: Arc<AtomicU64>,
    _listens: AbortOnDropHandle<()>,
}

impl Calls {
    /// Begins to count. No other test should use the server.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn of(url: &str) -> redis::RedisResult<Self> {
        let monitor = redis::Client::open(url)?.get_async_monitor().await?;
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let listens = tokio::spawn(async move {
            let mut lines = monitor.into_on_message::<String>();
            while let Some(line) = lines.next().await {
                counted.fetch_add(u64::from(!line.contains(" lua] ")), Ordering::SeqCst);
            }
        });
        Ok(Self {
            count,
            _listens: AbortOnDropHandle::new(listens),
        })
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn so_far(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns the calls in a second, measured over this time.
    pub async fn per_second(&self, watched: Duration) -> f64 {
        let mut watch = tokio::time::interval(watched);
        watch.tick().await;
        let before = self.so_far();
        watch.tick().await;
        (self.so_far() - before) as f64 / watched.as_secs_f64()
    }
}
