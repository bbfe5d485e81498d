//! How many calls clients make of a server, whoever makes them: what `MONITOR` shows, without what scripts call.

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
    /// Begins to count. Nobody else should use the server.
    ///
    /// # Errors
    /// When the server does not answer.
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

    /// Calls since it was made.
    #[must_use]
    pub fn so_far(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Calls in a second, while it looks on for so long.
    pub async fn per_second(&self, watched: Duration) -> f64 {
        let mut watch = tokio::time::interval(watched);
        watch.tick().await;
        let before = self.so_far();
        watch.tick().await;
        (self.so_far() - before) as f64 / watched.as_secs_f64()
    }
}
