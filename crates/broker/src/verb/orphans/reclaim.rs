//! reclaim: requeues the jobs of dead workers.

use meshwork_macros::boxed;
use meshwork_model::job::limits::{MAX_LOST, SUSPECT_LOST};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;
use crate::verb::jobs::blocking::MAX_WAIT;

/// Greatest number of leases in a call.
const MOST: usize = 200;

/// Greatest number of prefetch registrations in a call. Those of recently dead workers remain for a while, and must
/// leave room for others.
const MOST_LISTENERS: usize = MAX_ITEMS;

/// The result of a reclaim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Jobs that are next in their queues again.
    pub requeued: Vec<String>,
    /// Jobs that ended in error: they lost [`MAX_LOST`] workers, or were cancelled.
    pub ended: Vec<String>,
    /// Number of ids from prefetch lists of dead workers.
    pub moved: usize,
}

impl Broker {
    /// Requeues jobs whose lease has expired, and ids in prefetch lists of dead workers. The run does not count as an
    /// attempt, but as a lost worker; from [`SUSPECT_LOST`] on only if the job ran alone ([`Broker::isolate`]). After
    /// [`MAX_LOST`] lost workers the job becomes a dead letter, because it may be what kills them.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn reclaim(&self) -> Result<Reclaimed, Error> {
        let mut answer = self
            .scripts
            .call(Verb::Reclaim)
            .arg(self.clock.argument())
            .arg(MOST)
            .arg(MAX_LOST)
            .arg(MOST_LISTENERS)
            .arg(MAX_WAIT.as_millis() as u64)
            .arg(SUSPECT_LOST)
            .answer(&self.conn)
            .await?;
        Ok(Reclaimed {
            requeued: answer.texts("requeued")?,
            ended: answer.texts("ended")?,
            moved: answer.next("moved")?,
        })
    }
}
