//! Execute: one run of one job, within its time.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use meshwork_broker::Claimed;
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Setup;
use crate::runner::{self, Run};

/// How long after its deadline, or after it was told to stop, a runner may take to return before it is cut
/// off: a slot is not lost to a handler that ignores both.
const CUT_OFF: Duration = Duration::from_secs(5);

/// Runs the job. None if nobody wants its report any more.
pub(super) async fn execute(
    setup: &Setup,
    claimed: &Claimed,
    stop: CancellationToken,
) -> Option<Report> {
    let job = &claimed.job;
    if runner::is_ping(job) {
        return Some(Report::done(runner::PONG));
    }
    let Some(runner) = setup.runners.get(&claimed.queue) else {
        let message = format!("no runner for the jobs of {}", claimed.queue);
        return Some(Report::failed(Failure::new(
            FailureKind::Permanent,
            message,
        )));
    };
    let deadline = Instant::now() + Duration::from_secs(job.timeout);
    tracing::debug!(job = job.id, attempt = job.attempt, "run");
    let run = runner.run(Run {
        job: Job::clone(job),
        deadline,
        stop: stop.clone(),
    });
    let report = tokio::select! {
        report = AssertUnwindSafe(run).catch_unwind() => report.unwrap_or_else(|_| panicked()),
        () = tokio::time::sleep_until(deadline + CUT_OFF) => Report::failed(Failure::timeout()),
        () = stopped(&stop) => Report::failed(Failure::timeout()),
    };
    if stop.is_cancelled() {
        tracing::warn!(job = job.id, "the job was stopped, or its lease was lost");
        return None;
    }
    Some(report.bounded())
}

fn panicked() -> Report {
    Report::failed(Failure::new(
        FailureKind::Script,
        "the runner panicked; see the worker's log",
    ))
}

async fn stopped(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(CUT_OFF).await;
}
