//! fail: reports a failed run.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::limits::{MAX_RETRIES, MAX_SNOOZED, MAX_SNOOZES};
use meshwork_model::outcome::{Failure, FailureKind};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{Claimed, word};

/// The result of reporting a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The job is retried or snoozed: it waits, and then goes to the end of its queue.
    Requeued,
    /// The job ended in error.
    Failed,
    /// This worker has lost the lease; the report was ignored.
    Stale,
}

impl Broker {
    /// Reports a failure, if the fencing token is current. `retries` N means N + 1 runs. If a retry is left and the
    /// failure is retryable, the job goes to the end of its queue after `delay`. So does a snoozed job, without
    /// counting the run. Otherwise the job becomes `error` with the message, and a dead letter. A cancelled job does
    /// not become a dead letter.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn fail(
        &self,
        claimed: &Claimed,
        failure: &Failure,
        stdout: &[u8],
        stderr: &[u8],
        delay: Duration,
    ) -> Result<Failed, Error> {
        let answer = self
            .scripts
            .call(Verb::Fail)
            .key(claimed.key(&self.keys))
            .key(&claimed.queue)
            .arg(self.clock.argument())
            .arg(&claimed.job.id)
            .arg(&claimed.token)
            .arg(&failure.message)
            .arg(failure.traceback.as_deref().unwrap_or_default())
            .arg(match failure.kind {
                FailureKind::Snoozed => "snooze",
                kind if kind.retryable() => "1",
                _ => "0",
            })
            .arg(stdout)
            .arg(stderr)
            .arg(MAX_RETRIES)
            .arg(delay.as_millis() as u64)
            .arg(dead(failure.kind))
            .arg(failure.kind.as_str())
            .arg(MAX_SNOOZES)
            .arg(MAX_SNOOZED.as_millis() as u64)
            .run(&self.conn)
            .await?;
        let known = [
            ("requeued", Failed::Requeued),
            ("failed", Failed::Failed),
            ("stale", Failed::Stale),
        ];
        word("fail", answer, &known)
    }
}

/// Returns the reason of a dead letter for a kind of failure.
const fn dead(kind: FailureKind) -> &'static str {
    match kind {
        // Workers release jobs whose run has not started.
        FailureKind::Script | FailureKind::NotStarted => "failed",
        FailureKind::Timeout => "timeout",
        FailureKind::Limit => "limit",
        FailureKind::Permanent => "permanent",
        FailureKind::Snoozed => "snoozed",
        FailureKind::Stopped | FailureKind::Discarded => "",
    }
}
