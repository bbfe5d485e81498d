//! reclaim: take back what workers of ours that went away held; leave: what a worker that stops hands back.

use std::time::Duration;

use meshwork_model::keys::bananas::Bananas as Keys;

use super::Bananas;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, blocking};

/// The most leases looked at in one call.
const MOST: usize = 200;
/// For how long a loss is remembered: a job that kills its workers does so again long before.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Jobs that are first in their list again.
    pub requeued: Vec<Vec<u8>>,
    /// Ids that waited in feed lists of listeners that are gone.
    pub moved: usize,
}

impl Bananas {
    /// Takes back the jobs of ours whose lease has ended, and the ids that waited for a listener that is gone. The
    /// loss of the worker is counted, apart from failures.
    ///
    /// # Errors
    /// If the server does not take the call.
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

    /// Takes a worker off the list of those who listen, and hands back the ids that came to it meanwhile.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn leave(&self, worker: &str, lists: &[String]) -> Result<usize, Error> {
        let mut handed = 0;
        loop {
            let mut call = self.call(Verb::BananasLeave);
            for list in lists {
                call.push_key(list);
                call.push_key(self.keys.feed(worker, list));
                call.push_arg(Keys::feed_member(worker, list));
            }
            let mut answer = call.answer(&self.conn).await?;
            handed += answer.next::<usize>("moved")?;
            if !answer.flag("more")? {
                return Ok(handed);
            }
        }
    }
}
