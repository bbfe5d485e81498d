//! release: releases a job that was not completed.

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{Claimed, word};
use meshwork_macros::boxed;

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The job is the next one in its queue, and the attempt does not count.
    Released,
    /// This worker has lost the lease.
    Stale,
}

impl Broker {
    /// Releases a job without counting an attempt, if the fencing token is current. A worker does this at shutdown
    /// with its unfinished jobs.
    ///
    /// # Errors
    /// The server refuses the call; repeat it, or let the lease expire.
    #[boxed]
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
