//! reclaim: requeues the jobs of dead Meshwork workers; leave: releases the prefetched ids of a worker that shuts
//! down.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::bananas::BananasKeys as Keys;

use super::Bananas;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;
use crate::verb::jobs::blocking;

/// Greatest number of leases in a call.
const MOST: usize = 200;
/// Time for which lost workers of a job are counted. A job that kills its workers does so again much earlier.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// The result of a reclaim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Jobs that are next in their lists again.
    pub requeued: Vec<Vec<u8>>,
    /// Number of ids from prefetch lists of dead workers.
    pub moved: usize,
}

impl Bananas {
    /// Requeues Meshwork's jobs whose lease has expired, and the ids in prefetch lists of dead workers. Counts the
    /// lost worker separately from failures.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn reclaim(&self) -> Result<Reclaimed, Error> {
        let mut answer = self
            .call(Verb::BananasReclaim)
            .arg(MOST)
            .arg(MAX_ITEMS)
            .arg(blocking::MAX_WAIT.as_millis() as u64)
            .arg(REMEMBERED.as_millis() as u64)
            .answer(&self.conn)
            .await?;
        Ok(Reclaimed {
            requeued: answer.next("requeued")?,
            moved: answer.next("moved")?,
        })
    }

    /// Removes a worker's registered prefetch lists, and releases their ids.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn deregister(&self, worker: &str, lists: &[String]) -> Result<usize, Error> {
        let mut handed = 0;
        loop {
            let mut call = self.call(Verb::BananasDeregister);
            for list in lists {
                call.push_key(list);
                call.push_key(self.keys.feed(worker, list));
                call.push_arg(Keys::prefetch_member(worker, list));
            }
            let mut answer = call.answer(&self.conn).await?;
            handed += answer.next::<usize>("moved")?;
            if !answer.flag("more")? {
                return Ok(handed);
            }
        }
    }
}
