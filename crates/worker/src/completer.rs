//! Completer: reports single runs until the server has answered: failed runs, and all runs of protocols that store
//! results one by one. Other results go with the next claim, see [`super::fetcher`].

use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_model::outcome::Report;
use tokio::time::Instant;

use super::engine::Engine;
use super::exchange::Completed;
use super::protocol::{Failed, FailedRun, Protocol};
use super::task::{Completion, LeasedJob, REPEAT_FOR};
use crate::failure::Reason;
use crate::span;

/// Reports a failed run. Retries until the server has answered, the job is lost, or [`REPEAT_FOR`] is over.
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
            Ok(Failed::Retried(attempt)) => {
                engine.protocol.outages().succeeded("fail");
                counted::<P>(&task.job, attempt);
                reason.log(true);
            }
            Ok(Failed::Dead(attempt)) => {
                engine.protocol.outages().succeeded("fail");
                counted::<P>(&task.job, attempt);
                reason.log(false);
            }
            Err(error) if error.is_repeated() && Instant::now() < until => {
                engine.failed(("report", "fail"), &error);
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = task.cancel.lost() => {}
                }
            }
            Err(error) => {
                tracing::error!(job = %P::id(&task.job), %error, "failure not stored");
                // The job runs again after its lease has expired.
                reason.log(true);
            }
        }
        return;
    }
}

/// Releases a job whose run could not start. Retries until the server has answered, the job is lost, or [`REPEAT_FOR`]
/// is over.
pub(super) async fn not_started<P: Protocol>(engine: &Engine<P>, task: &LeasedJob<P::Job>) {
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    // A renewal may find that the job is released already.
    engine.in_flight.ended(task.seq);
    loop {
        match engine.protocol.release(&task.job).await {
            Ok(_) => engine.protocol.outages().succeeded("release"),
            Err(error) if error.is_repeated() && Instant::now() < until => {
                engine.failed(("release", "release"), &error);
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = task.cancel.lost() => {}
                }
            }
            Err(error) => {
                tracing::error!(job = %P::id(&task.job), %error, "job not released; its lease will expire");
            }
        }
        return;
    }
}

/// Records the attempt in the span of a run if it was not known before the report.
fn counted<P: Protocol>(job: &P::Job, attempt: u32) {
    if P::attempt(job).is_none() {
        span::attempt(attempt);
    }
}

/// Stores one result. Retries until the server has answered, the job is lost, or [`REPEAT_FOR`] is over.
pub(super) async fn complete<P: Protocol>(engine: &Engine<P>, result: &Completion<P::Job>) {
    engine.in_flight.ended(result.task.seq);
    let mut backoff = Backoff::new();
    loop {
        let results = std::slice::from_ref(result);
        let exchanged = engine
            .protocol
            .complete_and_claim(&engine.config, results, None);
        match exchanged.await.completed {
            Ok(completed) => {
                engine.protocol.outages().succeeded("report");
                engine.meter.heard();
                let id = P::id(&result.task.job);
                completed.iter().for_each(|one| log(*one, &id));
                return;
            }
            Err(error) => {
                engine.failed(("report", "report"), &error);
                if !result.repeats(&error, &P::id(&result.task.job)) {
                    return;
                }
            }
        }
        tokio::select! {
            () = backoff.wait() => {}
            () = result.task.cancel.lost() => return,
        }
    }
}

/// Logs the outcome of a report.
pub(super) fn log(completed: Completed, job: &str) {
    match completed {
        Completed::Stored => tracing::debug!(job, ok = true, "job completed"),
        Completed::Stale => stale(job),
    }
}

/// Logs a report that was refused because another worker has the job.
fn stale(job: &str) {
    tracing::warn!(job, "result dropped: this worker has lost the job");
}
