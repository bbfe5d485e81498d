//! whereabouts: finds the id of a job that is in no list of a queue, and reads its lease. Changes nothing.

use meshwork_macros::boxed;
use meshwork_model::name::JobId;

use crate::broker::Broker;
use crate::error::Error;

/// Greatest number of prefetch lists that are searched. A worker has one for each of its queues.
const MOST_LISTS: usize = 1000;

impl Broker {
    /// Returns the worker that has prefetched a job and has not claimed it; `None` if no list of a worker holds its id.
    /// Reads the first 1,000 lists, in two calls.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn prefetched_by(&self, id: &JobId) -> Result<Option<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.prefetch_registry());
        range.arg(0).arg(MOST_LISTS - 1);
        let members: Vec<String> = self.ask("inspect", &range).await?;
        if members.is_empty() {
            return Ok(None);
        }
        let mut pipe = redis::pipe();
        for member in &members {
            let list = format!("{}{member}", self.keys.prefetch_prefix());
            pipe.cmd("LPOS").arg(list).arg(id.as_str());
        }
        let places: Vec<Option<u64>> = self.ask_all("inspect", &pipe).await?;
        let holder = members
            .iter()
            .zip(places)
            .find(|(_, place)| place.is_some());
        let worker = |member: &String| match member.split_once(' ') {
            Some((worker, _)) => worker.to_owned(),
            None => member.clone(),
        };
        Ok(holder.map(|(member, _)| worker(member)))
    }

    /// Returns the end of a running job's lease, in milliseconds since 1970; `None` if it has none.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn lease_until(&self, id: &JobId) -> Result<Option<u64>, Error> {
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.lease()).arg(id.as_str());
        let until: Option<f64> = self.ask("inspect", &score).await?;
        Ok(until.map(|until| until as u64))
    }
}
