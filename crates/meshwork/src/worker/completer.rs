//! Completer: reports failed runs, each by itself, until the server has answered. Results go with the next exchange, see
//! [`super::fetcher`].

use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_model::outcome::Report;
use tokio::time::Instant;

use super::engine::Engine;
use super::protocol::{Failed, FailedRun, Protocol};
use super::task::{LeasedJob, REPEAT_FOR};
use crate::failure::Reason;

/// Reports a failed run, until the broker has answered, the job is lost, or [`REPEAT_FOR`] is over.
pub(super) async fn fail<P: Protocol>(
    engine: &Engine<P>,
    task: &LeasedJob<P::Job>,
    report: &Report,
    took: Duration,
) {
    let Err(failure) = &report.result else { return };
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    let reason = Reason::of(failure, &report.stderr);
    let failed = FailedRun {
        failure,
        reason: &reason,
        stdout: &report.stdout,
        stderr: &report.stderr,
        took,
    };
    loop {
        match engine.protocol.fail(&task.job, &failed).await {
            Ok(Failed::Stale) => stale(&P::id(&task.job)),
            Ok(Failed::Retried(_)) => {
                engine.protocol.outages().succeeded("fail");
                reason.log(true);
            }
            Ok(Failed::Dead) => {
                engine.protocol.outages().succeeded("fail");
                reason.log(false);
            }
            Err(error) if error.is_temporary() && Instant::now() < until => {
                engine.failed(("report", "fail"), &error);
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = task.cancel.lost() => {}
                }
            }
            Err(error) => {
                tracing::error!(job = %P::id(&task.job), %error, "failure not stored");
                // When its lease has expired.
                reason.log(true);
            }
        }
        return;
    }
}

/// A report came after the job belonged to another worker.
pub(super) fn stale(job: &str) {
    tracing::warn!(
        job,
        "result dropped: the job does not belong to this worker any more"
    );
}
