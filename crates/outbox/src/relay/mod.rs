//! The relay: moves rows of the outbox to the store.

mod batch;
mod refusals;
mod send;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use meshwork::Client;
use meshwork_broker::Backoff;
use sqlx::Pool;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::{Database, Error, Outbox};
use refusals::Refusals;
pub(crate) use send::read;

/// Default interval of polling, in which a relay finds rows whose notification was lost.
const POLL: Duration = Duration::from_secs(5);
/// Default retention of ids of processed jobs: four times that of ended jobs, which can be run again by hand.
const KEEP_PROCESSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// Silence after which the connection that hears notifications is probed. The probe may take as long.
const PROBE: Duration = Duration::from_secs(10);
/// Longest time of one batch. A database that stalls for longer is reported.
const BATCH_TIME: Duration = Duration::from_secs(60);
/// Default time in which a batch may end after the shutdown.
const GRACE: Duration = Duration::from_secs(25);
/// Interval of maintenance, and of log lines about an outage or a backlog.
const MAINTENANCE: Duration = Duration::from_secs(60);

/// Moves the rows of an outbox to the store. Several relays can serve one outbox.
///
/// A relay holds each row while its job is enqueued, by a lock of PostgreSQL or by a lease in SQLite, and deletes it when
/// the store has answered. A row that the store refuses gets the error, and does not delay others: [`Outbox::errors`].
#[derive(Debug, Clone)]
pub struct Relay<D: Database> {
    outbox: Outbox,
    pool: Pool<D>,
    client: Client,
    poll: Duration,
    keep_processed: Duration,
    shutdown_timeout: Duration,
    pub(crate) probe: Duration,
}

impl<D: Database> Relay<D> {
    /// Creates a relay for [`Outbox::new`]. It uses one connection of the pool, and a second one of its own, which hears of
    /// new rows.
    #[must_use]
    pub fn new(pool: &Pool<D>, client: &Client) -> Self {
        Self {
            outbox: Outbox::new(),
            pool: pool.clone(),
            client: client.clone(),
            poll: POLL,
            keep_processed: KEEP_PROCESSED,
            shutdown_timeout: GRACE,
            probe: PROBE,
        }
    }

    /// Serves another outbox, as one of [`Outbox::in_schema`].
    #[must_use]
    pub fn outbox(mut self, outbox: &Outbox) -> Self {
        self.outbox = outbox.clone();
        self
    }

    /// Sets the interval of polling. Default: 5 s. A new row is moved at once, unless its notification is lost or
    /// switched off. SQLite: within 100 ms.
    #[must_use]
    pub fn poll(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Sets the retention of the ids of [`Outbox::processed_once`]. Default: 30 days. A job that runs again after that
    /// time has its effect again.
    #[must_use]
    pub fn keep_processed(mut self, age: Duration) -> Self {
        self.keep_processed = age;
        self
    }

    /// Sets the longest wait for the batch under way at shutdown. Default: 25 s. The rows of a batch that is cut off stay.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Moves rows until `shutdown` returns, and ends the batch under way ([`Self::shutdown_timeout`]). While the database or
    /// the store is away, the relay tries again, at least once a second.
    ///
    /// # Errors
    /// At the start: the tables do not exist, or the client is of a context. Later: [`Error::FileReplaced`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        if self.client.broker().keys().context().is_some() {
            return Err(Error::InContext);
        }
        if let Err(error @ Error::NoTable { .. }) = self.outbox.backlog(&self.pool).await {
            return Err(error);
        }
        let wakeup = Arc::new(Notify::new());
        let mut watch = D::watch(&self.pool, &self.outbox.tables, &wakeup, self.probe);
        let (mut outage, mut backoff) = (Outage::default(), Backoff::new());
        let mut refusals = Refusals::default();
        let mut maintained = Instant::now();
        let mut shutdown = pin!(shutdown);
        loop {
            let moved = {
                let mut batch = pin!(self.timed_batch(&mut refusals));
                tokio::select! {
                    moved = &mut batch => Some(moved),
                    () = &mut shutdown => {
                        timeout(self.shutdown_timeout, batch).await.ok();
                        None
                    }
                }
            };
            let Some(moved) = moved else {
                refusals.tell_now();
                return Ok(());
            };
            let pause = async {
                match moved {
                    Ok(more) => {
                        outage.ends();
                        backoff = Backoff::new();
                        if !more {
                            refusals.tell();
                            timeout(self.poll, wakeup.notified()).await.ok();
                        }
                    }
                    Err(error) => {
                        outage.begins(&error);
                        backoff.wait().await;
                    }
                }
                if maintained.elapsed() >= MAINTENANCE {
                    maintained = Instant::now();
                    self.maintain().await;
                }
            };
            tokio::select! {
                () = pause => {}
                () = &mut shutdown => {
                    refusals.tell_now();
                    return Ok(());
                }
                Some(Ok(error)) = watch.join_next() => return Err(error),
            }
        }
    }

    /// Moves the rows that are due now, and returns.
    ///
    /// # Errors
    /// The database or the store refuses a call.
    pub async fn drain(&self) -> Result<(), Error> {
        let mut refusals = Refusals::default();
        let drained = loop {
            match self.timed_batch(&mut refusals).await {
                Ok(true) => {}
                ended => break ended.map(drop),
            }
        };
        refusals.tell_now();
        drained
    }

    /// Moves a batch. Returns true if there may be more.
    async fn timed_batch(&self, refusals: &mut Refusals) -> Result<bool, Error> {
        let batch = timeout(BATCH_TIME, Box::pin(self.batch(refusals))).await;
        batch.unwrap_or(Err(Error::Timeout(BATCH_TIME.as_secs())))
    }

    /// Deletes old ids of processed jobs, and logs the backlog. Errors are those of the next batch.
    async fn maintain(&self) {
        while let Ok(Ok(deleted)) = timeout(
            BATCH_TIME,
            self.outbox.prune_processed(&self.pool, self.keep_processed),
        )
        .await
            && deleted > 0
        {
            sleep(Duration::from_millis(100)).await;
        }
        if let Ok(Ok(backlog)) = timeout(BATCH_TIME, self.outbox.backlog(&self.pool)).await {
            let (waiting, oldest_ms) = (backlog.waiting, backlog.oldest_ms);
            info!(
                waiting,
                oldest_ms,
                set_aside = backlog.set_aside,
                "outbox backlog"
            );
        }
    }
}

/// Failed batches in a row.
#[derive(Debug, Default)]
struct Outage {
    /// Time of the last log line.
    logged: Option<Instant>,
    failures: u64,
}

impl Outage {
    fn begins(&mut self, error: &Error) {
        self.failures += 1;
        if self.logged.is_none_or(|at| at.elapsed() >= MAINTENANCE) {
            self.logged = Some(Instant::now());
            warn!(%error, failures = self.failures, "relay failed; it tries again");
        }
    }

    fn ends(&mut self) {
        if self.failures > 0 {
            info!(failures = self.failures, "relay recovered");
            *self = Self::default();
        }
    }
}
