//! Queues: reading, pausing, draining and limiting them.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::{Configured, Limits, QueueDepth, QueueInfo, Settings};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::QueueSetting;
use tokio::time::Instant;

use super::Client;
use crate::Error;

/// Shortest pause between two polls of a queue that drains.
const LOOK: Duration = Duration::from_millis(250);
/// A pause is at least this many times as long as the poll before it, since a poll takes longer with many jobs.
const LOOKING: u32 = 10;

impl Client {
    /// Returns all queues with their lengths.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        Ok(self.broker.queues().await?)
    }

    /// Reads the settings of all queues.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn settings(&self) -> Result<Settings, Error> {
        Ok(self.broker.settings().await?)
    }

    /// Reads the maximum lengths of all queues.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn limits(&self) -> Result<Limits, Error> {
        Ok(self.broker.settings().await?.limits)
    }

    /// Sets the maximum length of a queue, or removes it; without a queue, of all queues without a limit of their own.
    /// [`Client::enqueue`] is refused beyond that length. It applies to each priority's list separately; 0 refuses all
    /// jobs. Retried and reclaimed jobs are never refused.
    ///
    /// # Errors
    /// The limit is over [`meshwork_broker::MAX_QUEUE_LIMIT`], or the call to the server fails.
    #[boxed]
    pub async fn set_max_length(
        &self,
        queue: Option<&str>,
        limit: Option<u64>,
    ) -> Result<(), Error> {
        Ok(self.broker.set_max_length(queue, limit).await?)
    }

    /// Changes single settings of a queue, for all its priorities together; others stay as they are. When this returns,
    /// a new concurrency limit has counted all running jobs.
    ///
    /// # Errors
    /// A setting is invalid; nothing is changed then. Or a call to the server fails; repeat it then.
    #[boxed]
    pub async fn update_queue(
        &self,
        queue: &str,
        settings: &[QueueSetting],
    ) -> Result<Configured, Error> {
        Ok(self.broker.configure(queue, settings).await?)
    }

    /// Returns true if a job was enqueued to the queue, a worker has listened to it, or it has settings.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn is_used(&self, queue: &str) -> Result<bool, Error> {
        let queue = JobKeys::without_priority(queue);
        // The scan of all keys comes last, since it takes longer the more keys there are.
        if self.broker.has_figures(queue).await? {
            return Ok(true);
        }
        let is = |name: &str| JobKeys::without_priority(name) == queue;
        let limits = self.broker.or_nothing(self.broker.settings().await)?.limits;
        if limits.queues.keys().any(|name| is(name)) {
            return Ok(true);
        }
        Ok(self.queues().await?.iter().any(|info| is(&info.queue)))
    }

    /// Pauses a queue: no job starts until it is resumed. Running jobs go on, and new jobs are accepted.
    ///
    /// # Errors
    /// A call to the server fails; repeat it then.
    #[boxed]
    pub async fn pause(&self, queue: &str) -> Result<(), Error> {
        self.update_queue(queue, &[QueueSetting::Paused(true)])
            .await?;
        Ok(())
    }

    /// Ends a pause or drain of a queue. Jobs start within 200 ms if a worker has a free slot.
    ///
    /// # Errors
    /// A call to the server fails; repeat it then.
    #[boxed]
    pub async fn resume(&self, queue: &str) -> Result<(), Error> {
        let open = [QueueSetting::Paused(false), QueueSetting::Draining(false)];
        self.update_queue(queue, &open).await?;
        Ok(())
    }

    /// Starts a drain of a queue: new jobs are refused with [`Error::QueueDraining`] until it is resumed. Existing jobs and
    /// their retries go on.
    ///
    /// # Errors
    /// A call to the server fails; repeat it then.
    #[boxed]
    pub async fn start_drain(&self, queue: &str) -> Result<(), Error> {
        self.update_queue(queue, &[QueueSetting::Draining(true)])
            .await?;
        Ok(())
    }

    /// Counts the unfinished jobs of a queue.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        Ok(self.broker.depth(queue).await?)
    }

    /// Drains a queue: refuses new jobs, and waits until its lists are empty and no job of it runs or waits for a
    /// retry. Delayed jobs and jobs with prerequisites are reported, not awaited. Calls `progress` at each poll.
    /// [`Client::resume`] ends the drain.
    ///
    /// # Errors
    /// [`Error::DrainTimeout`] if the queue is not empty after `patience`; it still refuses new jobs then. Or a call to
    /// the server fails.
    pub async fn drain(
        &self,
        queue: &str,
        patience: Duration,
        mut progress: impl FnMut(&QueueDepth),
    ) -> Result<QueueDepth, Error> {
        self.start_drain(queue).await?;
        let until = Instant::now() + patience;
        loop {
            let began = Instant::now();
            let depth = self.depth(queue).await?;
            progress(&depth);
            if depth.is_empty() {
                return Ok(depth);
            }
            let now = Instant::now();
            if now >= until {
                return Err(Error::DrainTimeout {
                    queue: self.broker.keys().queue_name(queue).to_owned(),
                    waited: patience,
                    depth,
                });
            }
            let next = now + LOOK.max((now - began) * LOOKING);
            tokio::time::sleep_until(next.min(until)).await;
        }
    }
}
