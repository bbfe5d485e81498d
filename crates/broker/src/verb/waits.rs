//! waits: what a job that does not run waits for, as far as its queue and its own wishes go. It changes nothing.

use meshwork_model::job::Job;
use meshwork_model::keys::hero::Hero;
use meshwork_model::queue::Rate;
use meshwork_model::state::Status;

use super::text;
use crate::{Broker, Error};

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waits {
    /// Its time, or its next run: milliseconds since 1970.
    Time(u64),
    /// Its queue is paused.
    Paused,
    /// It is set aside until its key may start another, behind so many of the same key.
    Key {
        /// The key.
        key: String,
        /// How many of it are set aside before it.
        ahead: usize,
    },
    /// So many of its queue run, as many as may.
    Concurrency(u64),
    /// The rate of its queue lets another start in so many milliseconds.
    Rate(Rate, u64),
}

impl Broker {
    /// What a job waits for but its place in the queue and other jobs; nothing for one that runs or has ended,
    /// and for one that is only behind others.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn waits(&self, job: &Job) -> Result<Vec<Waits>, Error> {
        let mut waits = Vec::new();
        if job.status() != Some(Status::Dispatched) {
            return Ok(waits);
        }
        if let Some(due) = self.next_run(&job.job_id()).await? {
            waits.push(Waits::Time(due));
        }
        let list = self.queue_of(job);
        let (queue, set) = (
            Hero::without_priority(&list),
            self.settings_of(&list).await?,
        );
        if set.paused {
            waits.push(Waits::Paused);
        }
        if let Some(key) = &job.key {
            let mut rank = redis::cmd("ZRANK");
            rank.arg(self.keys.backlog(&Hero::of_key(&list, key)))
                .arg(&job.id);
            let ahead: Option<usize> = self.ask("waits", &rank).await?;
            let key = key.clone();
            waits.extend(ahead.map(|ahead| Waits::Key { key, ahead }));
        }
        if let Some(most) = set.concurrency {
            let slots = redis::cmd("ZCARD").arg(self.keys.slots(queue)).to_owned();
            let taken: u64 = self.ask("waits", &slots).await?;
            waits.extend((taken >= most).then_some(Waits::Concurrency(most)));
        }
        if let Some(rate) = set.rate {
            let state = redis::cmd("GET")
                .arg(self.keys.rate_state(queue))
                .to_owned();
            let kept: Option<Vec<u8>> = self.ask("waits", &state).await?;
            let ms = rate.wait_ms(&text(kept.unwrap_or_default()), self.now().await?);
            waits.extend((ms > 0).then_some(Waits::Rate(rate, ms)));
        }
        Ok(waits)
    }
}
