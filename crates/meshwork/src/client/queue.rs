//! Queues: looking at them, pausing, draining and limiting them.

use std::time::Duration;

use meshwork_broker::{Configured, Limits, QueueDepth, QueueInfo, Settings};
use meshwork_model::keys::hero::Hero;
use meshwork_model::queue::QueueSetting;
use tokio::time::Instant;

use super::Client;
use crate::Error;

/// Between two looks at a queue that is being drained. Where many jobs run or are delayed a look takes longer,
/// and the next one waits as many times longer.
const LOOK: Duration = Duration::from_millis(250);
/// At most so much of the time is spent with looking: one part of so many.
const LOOKING: u32 = 10;

impl Client {
    /// All work queues.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        Ok(self.broker.queues().await?)
    }

    /// Reads the settings of all queues.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn settings(&self) -> Result<Settings, Error> {
        Ok(self.broker.settings().await?)
    }

    /// Reads the maximum lengths of all queues.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn limits(&self) -> Result<Limits, Error> {
        Ok(self.broker.settings().await?.limits)
    }

    /// Sets how many ids `queue` may hold before [`Client::submit`] is refused, or takes its limit away;
    /// without a queue, the limit of all that have none of their own. Each priority of a queue is a list of
    /// its own; 0 lets nothing in. Jobs that come back, as for a retry, are never refused.
    ///
    /// # Errors
    /// If the limit is over [`meshwork_broker::MAX_QUEUE_LIMIT`], or the server does not take the call.
    pub async fn limit_queue(&self, queue: Option<&str>, limit: Option<u64>) -> Result<(), Error> {
        Ok(self.broker.limit_queue(queue, limit).await?)
    }

    /// Changes single settings of a queue, for all its priorities together; the others stay. A limit of
    /// concurrency counts what runs already when this returns.
    ///
    /// # Errors
    /// If a setting cannot be: nothing was changed then. If the server does not take a call; repeat it then.
    pub async fn set_queue(
        &self,
        queue: &str,
        settings: &[QueueSetting],
    ) -> Result<Configured, Error> {
        Ok(self.broker.configure(queue, settings).await?)
    }

    /// True if a job was enqueued to the queue, a worker has consumed it, or it has settings.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn is_used(&self, queue: &str) -> Result<bool, Error> {
        let queue = Hero::without_priority(queue);
        let is = |name: &str| Hero::without_priority(name) == queue;
        if self.queues().await?.iter().any(|info| is(&info.queue)) {
            return Ok(true);
        }
        Ok(self.broker.has_figures(queue).await?)
    }

    /// Lets nothing of a queue start, until it is resumed; what runs goes on, and new jobs are taken.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn pause(&self, queue: &str) -> Result<(), Error> {
        self.set_queue(queue, &[QueueSetting::Paused(true)]).await?;
        Ok(())
    }

    /// Ends a pause, and a drain: the queue takes jobs, and they start within 200 ms where a worker has room.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn resume(&self, queue: &str) -> Result<(), Error> {
        let open = [QueueSetting::Paused(false), QueueSetting::Draining(false)];
        self.set_queue(queue, &open).await?;
        Ok(())
    }

    /// Lets a queue take no new jobs: they are refused with [`Error::Draining`] until it is resumed. What it
    /// has goes on, retries too.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn close_queue(&self, queue: &str) -> Result<(), Error> {
        self.set_queue(queue, &[QueueSetting::Draining(true)])
            .await?;
        Ok(())
    }

    /// Counts the unfinished jobs of a queue.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        Ok(self.broker.depth(queue).await?)
    }

    /// Starts a drain of a queue, and waits until its lists are empty and no job of it runs or waits for a retry.
    /// Delayed jobs and jobs with prerequisites are reported, not awaited. Calls `progress` at each poll.
    /// [`Client::resume`] ends the drain.
    ///
    /// # Errors
    /// [`Error::NotDrained`] if it is not empty after `patience`: it takes no new jobs all the same. If the
    /// server does not take a call.
    pub async fn drain(
        &self,
        queue: &str,
        patience: Duration,
        mut progress: impl FnMut(&QueueDepth),
    ) -> Result<QueueDepth, Error> {
        self.close_queue(queue).await?;
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
                return Err(Error::NotDrained {
                    queue: queue.to_owned(),
                    waited: patience,
                    depth,
                });
            }
            let next = now + LOOK.max((now - began) * LOOKING);
            tokio::time::sleep_until(next.min(until)).await;
        }
    }
}
