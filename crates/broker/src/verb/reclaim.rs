//! reclaim: take back what workers that went away held.

use meshwork_model::job::limits::MAX_LOST;

use super::MAX_ITEMS;
use super::blocking::MAX_WAIT;
use crate::script::Verb;
use crate::{Broker, Error};

/// The most leases looked at in one call.
const MOST: usize = 200;

/// The most listeners looked at in one call. Those that died lately stay for a while, and should leave room
/// for others.
const MOST_LISTENERS: usize = MAX_ITEMS;

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Jobs that are first in their queue again.
    pub requeued: Vec<String>,
    /// Jobs that ended in error: they lost [`MAX_LOST`] workers, or were to be stopped.
    pub ended: Vec<String>,
    /// Ids that waited in feed lists of listeners that are gone.
    pub moved: usize,
}

impl Broker {
    /// Takes back the jobs whose lease has ended, and the ids that waited for a listener that is gone. A
    /// job's run does not count then, but the loss of its worker does, apart from failures; with the loss
    /// that makes [`MAX_LOST`] the job becomes a dead letter, since it may be what kills them.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn reclaim(&self) -> Result<Reclaimed, Error> {
        let mut answer = self
            .scripts
            .call(Verb::Reclaim)
            .arg(self.clock.argument())
            .arg(MOST)
            .arg(MAX_LOST)
            .arg(MOST_LISTENERS)
            .arg(MAX_WAIT.as_millis() as u64)
            .answer(&self.conn)
            .await?;
        Ok(Reclaimed {
            requeued: answer.texts("requeued")?,
            ended: answer.texts("ended")?,
            moved: answer.next("moved")?,
        })
    }
}
