//! release: hand a job back unrun.

use super::{Claimed, word};
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It is the next one in its queue, and the attempt does not count.
    Released,
    /// The job is not this worker's any more.
    Stale,
}

impl Broker {
    /// Hands a job back at no cost, if the fencing token is still the one in force: a worker that stops
    /// does so with what it has not finished.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it, or let the lease end.
    pub async fn release(&self, claimed: &Claimed) -> Result<Released, Error> {
        let answer = self
            .scripts
            .call(Verb::Release)
            .key(claimed.key(&self.keys))
            .key(&claimed.queue)
            .arg(self.clock.argument())
            .arg(&claimed.job.id)
            .arg(&claimed.token)
            .run(&self.conn)
            .await?;
        word(
            "release",
            answer,
            &[("released", Released::Released), ("stale", Released::Stale)],
        )
    }
}
