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
        /// Number of its jobs that run, if they are as many as may.
        full: Option<u64>,
        /// The rate of each key, and the time until the key's next start in milliseconds, if it has to wait.
        rate: Option<(Rate, u64)>,
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
        if let Some(due) = self.or_nothing(self.next_run(&job.job_id()).await)? {
            waits.push(Blocker::Time(due));
        }
        let list = self.queue_of(job);
        let (queue, set) = (
            JobKeys::without_priority(&list),
            self.or_nothing(self.settings_of(&list).await)?,
        );
        if set.paused {
            waits.push(Blocker::Paused);
        }
        if let Some(key) = &job.key {
            let mut rank = redis::cmd("ZRANK");
            rank.arg(self.keys.backlog(&JobKeys::of_key(&list, key)))
                .arg(&job.id);
            let ahead: Option<usize> = self.or_nothing(self.ask("waits", &rank).await)?;
            if let Some(ahead) = ahead {
                let of_key = JobKeys::of_key(queue, key);
                waits.push(Blocker::Key {
                    key: key.clone(),
                    ahead,
                    full: self.full(&of_key, set.key_concurrency).await?,
                    rate: self.next_start(&of_key, set.key_rate).await?,
                });
            }
        }
        let full = self.full(queue, set.concurrency).await?;
        waits.extend(full.map(Blocker::Concurrency));
        let start = self.next_start(queue, set.rate).await?;
        waits.extend(start.map(|(rate, ms)| Blocker::Rate(rate, ms)));
        Ok(waits)
    }

    /// Returns the limit of a queue or key if as many jobs run.
    async fn full(&self, of: &str, most: Option<u64>) -> Result<Option<u64>, Error> {
        let Some(most) = most else { return Ok(None) };
        let slots = redis::cmd("ZCARD").arg(self.keys.slots(of)).to_owned();
        let taken: u64 = self.or_nothing(self.ask("waits", &slots).await)?;
        Ok((taken >= most).then_some(most))
    }

    /// Returns the rate of a queue or key, with the milliseconds until its next start, if that is not now.
    async fn next_start(&self, of: &str, rate: Option<Rate>) -> Result<Option<(Rate, u64)>, Error> {
        let Some(rate) = rate else { return Ok(None) };
        let state = redis::cmd("GET").arg(self.keys.rate_state(of)).to_owned();
        let kept: Option<Vec<u8>> = self.or_nothing(self.ask("waits", &state).await)?;
        let ms = rate.wait_ms(&text(kept.unwrap_or_default()), self.now().await?);
        Ok((ms > 0).then_some((rate, ms)))
    }
}
