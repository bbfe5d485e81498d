//! Report: tells the broker how a run ended, as often as it takes. Results go with the next exchange, see
//! [`super::pull`]; failures are told here, each by itself.

use std::time::Duration;

use meshwork_broker::{Backoff, Failed, Finished, finish};
use meshwork_model::outcome::Failure;
use tokio::time::Instant;

use super::Setup;
use super::slot::Slot;
use crate::failure::Reason;
use crate::runner::StopReason;

/// How long a report is repeated while the server is away; after that the job runs again when its lease
/// has ended.
const REPEAT_FOR: Duration = Duration::from_secs(600);

/// A run that ended well, until its result is in the record.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) slot: Slot,
    output: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    until: Instant,
    /// A call with others was refused for good: it goes alone, so that it spoils no other one.
    pub(super) alone: bool,
}

impl Ran {
    pub(super) fn new(slot: Slot, output: Vec<u8>, (stdout, stderr): (Vec<u8>, Vec<u8>)) -> Self {
        Self {
            slot,
            output,
            stdout,
            stderr,
            until: Instant::now() + REPEAT_FOR,
            alone: false,
        }
    }

    /// As the broker takes it.
    pub(super) fn result(&self) -> finish::Result<'_> {
        finish::Result {
            claimed: &self.slot.claimed,
            output: &self.output,
            stdout: &self.stdout,
            stderr: &self.stderr,
        }
    }

    /// What it takes in a call, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.output.len() + self.stdout.len() + self.stderr.len()
    }

    /// It was told.
    pub(super) fn told(&self, finished: Finished) {
        match finished {
            Finished::Finished => tracing::debug!(job = self.slot.id(), ok = true, "reported"),
            Finished::Stale => stale(&self.slot),
        }
    }

    /// A call with it has failed. Whether it is worth another one.
    pub(super) fn is_worth(&self, error: &meshwork_broker::Error) -> bool {
        if self.is_lost() {
            return false;
        }
        let worth = error.is_temporary() && Instant::now() < self.until;
        if !worth {
            unreported(&self.slot, error);
        }
        worth
    }

    /// Whether nobody wants its report any more.
    pub(super) fn is_lost(&self) -> bool {
        self.slot.stop.reason() == Some(StopReason::Lost)
    }
}

/// Reports until the broker has answered, the job is lost, or [`REPEAT_FOR`] is over.
pub(super) async fn fail(setup: &Setup, slot: &Slot, failure: &Failure, logs: (&[u8], &[u8])) {
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    let (claimed, reason) = (&slot.claimed, Reason::of(failure, logs.1));
    let pause = setup.backoff.pause(
        claimed.job.attempt,
        claimed.job.backoff_ms.map(Duration::from_millis),
        rand::random(),
    );
    loop {
        let told = setup.broker.fail(claimed, failure, logs.0, logs.1, pause);
        match told.await {
            Ok(Failed::Stale) => stale(slot),
            Ok(told) => {
                setup.broker.outages().succeeded("fail");
                let runs_again = told == Failed::Requeued;
                reason.log(runs_again);
                if runs_again {
                    setup.next_due.note(pause);
                }
            }
            Err(error) if error.is_temporary() && Instant::now() < until => {
                setup.meter.failed("report", &error);
                setup.broker.outages().failed("fail", &error);
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = slot.stop.lost() => {}
                }
            }
            Err(error) => {
                unreported(slot, &error);
                // When its lease has ended.
                reason.log(true);
            }
        }
        return;
    }
}

fn stale(slot: &Slot) {
    tracing::warn!(
        job = slot.id(),
        "the job is not ours any more; its result is dropped"
    );
}

fn unreported(slot: &Slot, error: &meshwork_broker::Error) {
    tracing::error!(job = slot.id(), %error, "the result could not be reported");
}
