//! finish: end a job with its result.

use super::{Claimed, word};
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is in the record, and on the reply list if somebody may wait there.
    Finished,
    /// The job is not this worker's any more: the result was thrown away.
    Stale,
}

impl Broker {
    /// Sets a job `finished` with its output (seed 2), if the fencing token is still the one in force. The
    /// ends of stdout and stderr are kept beside it.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn finish(
        &self,
        claimed: &Claimed,
        output: &[u8],
        stdout: &[u8],
        stderr: &[u8],
    ) -> Result<Finished, Error> {
        let answer = self
            .scripts
            .call(Verb::Finish)
            .key(claimed.key(&self.keys))
            .arg(self.clock.argument())
            .arg(&claimed.job.id)
            .arg(&claimed.token)
            .arg(output)
            .arg(stdout)
            .arg(stderr)
            .run(&self.conn)
            .await?;
        word(
            "finish",
            answer,
            &[("finished", Finished::Finished), ("stale", Finished::Stale)],
        )
    }
}
