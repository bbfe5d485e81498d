//! blockers: returns the reasons why a job does not run, as far as its queue and its own options go. Changes nothing.

use meshwork_macros::boxed;
use meshwork_model::job::Job;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::Rate;
use meshwork_model::state::Status;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::text;

/// A reason why a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocker {
    /// Its due time, or that of its retry, in milliseconds since 1970.
    Time(u64),
    /// Its queue is paused.
    Paused,
    /// It is in the backlog of its concurrency key.
    Key {
        /// The key.
        key: String,
        /// Number of jobs before it in the backlog.
        ahead: usize,
    },
    /// The queue has reached its concurrency: this many of its jobs run.
    Concurrency(u64),
    /// The rate of its queue permits the next start after this many milliseconds.
    Rate(Rate, u64),
}

impl Broker {
    /// Returns the reasons why a job waits, other than its position in the queue and other jobs. Empty for a job that
    /// runs or has ended, or is only behind others.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn blockers(&self, job: &Job) -> Result<Vec<Blocker>, Error> {
        let mut waits = Vec::new();
        if job.status() != Some(Status::Dispatched) {
            return Ok(waits);
        }
        if let Some(due) = self.next_run(&job.job_id()).await? {
            waits.push(Blocker::Time(due));
        }
        let list = self.queue_of(job);
        let (queue, set) = (
            JobKeys::without_priority(&list),
            self.settings_of(&list).await?,
        );
        if set.paused {
            waits.push(Blocker::Paused);
        }
        if let Some(key) = &job.key {
            let mut rank = redis::cmd("ZRANK");
            rank.arg(self.keys.backlog(&JobKeys::of_key(&list, key)))
                .arg(&job.id);
            let ahead: Option<usize> = self.ask("waits", &rank).await?;
            let key = key.clone();
            waits.extend(ahead.map(|ahead| Blocker::Key { key, ahead }));
        }
        if let Some(most) = set.concurrency {
            let slots = redis::cmd("ZCARD").arg(self.keys.slots(queue)).to_owned();
            let taken: u64 = self.ask("waits", &slots).await?;
            waits.extend((taken >= most).then_some(Blocker::Concurrency(most)));
        }
        if let Some(rate) = set.rate {
            let state = redis::cmd("GET")
                .arg(self.keys.rate_state(queue))
                .to_owned();
            let kept: Option<Vec<u8>> = self.ask("waits", &state).await?;
            let ms = rate.wait_ms(&text(kept.unwrap_or_default()), self.now().await?);
            waits.extend((ms > 0).then_some(Blocker::Rate(rate, ms)));
        }
        Ok(waits)
    }
}
