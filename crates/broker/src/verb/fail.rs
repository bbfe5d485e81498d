//! fail: report a run that went wrong.

use std::time::Duration;

use meshwork_model::job::limits::{MAX_RETRIES, MAX_SNOOZED, MAX_SNOOZES};
use meshwork_model::outcome::{Failure, FailureKind};

use super::{Claimed, word};
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a failed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// A retry was left, or it was snoozed: it waits for that, then at the end of its queue.
    Requeued,
    /// It ended in error.
    Failed,
    /// The job is not this worker's any more: the report was thrown away.
    Stale,
}

impl Broker {
    /// Reports a failure, if the fencing token is still the one in force. `retries` N means N + 1 runs:
    /// while one is left, and the failure is one that another run may avoid, the job goes back to the end
    /// of its queue after `delay`, as a snoozed one does, at no cost; else it becomes `error` with the message and a dead letter. One
    /// that was stopped is no dead letter.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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

/// Why a job that ends with such a failure is a dead letter.
const fn dead(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Script => "failed",
        FailureKind::Timeout => "timeout",
        FailureKind::Permanent => "permanent",
        FailureKind::Snoozed => "snoozed",
        FailureKind::Stopped | FailureKind::Discarded => "",
    }
}
