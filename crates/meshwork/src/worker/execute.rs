//! Execute: one run of one job, within its time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use meshwork_broker::Claimed;
use meshwork_model::job::Job;
use meshwork_model::name::BatchId;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::time::Instant;

use super::Setup;
use super::logfile::{self, LogFile, LogPathError};
use super::ship::{self, Shipping};
use super::slot::With;
use crate::Batch;
use crate::runner::{self, Run, Runner, StopReason, StopSignal, Submitter};

/// How long after its grace a runner may take to return before it is cut off: a slot is not lost to a
/// handler that hears on nothing.
const CUT_OFF: Duration = Duration::from_secs(5);

/// How long the last lines may take to their file.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Runs the job. None if nobody wants its report any more.
pub(super) async fn execute(
    setup: &Setup,
    claimed: &Arc<Claimed>,
    stop: &StopSignal,
    (trace, announced): With,
) -> Option<Report> {
    let job = &claimed.job;
    if runner::is_ping(job) {
        return Some(Report::done(runner::PONG));
    }
    let Some(runner) = setup.runner(&claimed.queue) else {
        let message = format!("no runner for the jobs of {}", claimed.queue);
        return Some(Report::failed(Failure::new(
            FailureKind::Permanent,
            message,
        )));
    };
    let log_file = match open_log(setup, job).await {
        Ok(log_file) => log_file,
        Err(failure) => return Some(Report::failed(failure)),
    };
    let deadline = Instant::now() + Duration::from_secs(job.timeout);
    let mut run = Run::new(Arc::clone(job), deadline);
    run.submitter = Submitter::new(&setup.broker, claimed, trace.clone());
    run.stop = stop.clone();
    run.grace = setup.stop_grace;
    run.trace = trace;
    run.announced = announced;
    run.batch = job.batch.clone().map(|id| {
        let (id, token) = (BatchId::foreign(id), claimed.token.clone());
        Batch::of_run(&setup.broker, id, job.job_id(), token)
    });
    let log = run.log.clone();
    let written = log_file.map(|file| tokio::spawn(file.keep(log.drain(logfile::CAPACITY))));
    let mut shipping = Shipping::new(log.drain(ship::CAPACITY));
    let report = {
        let run = bounded(&**runner, run);
        tokio::pin!(run);
        tokio::select! {
            biased;
            report = &mut run => report,
            () = shipping.begins(setup, claimed) => run.await,
        }
    };
    log.close();
    shipping.ended(setup, claimed).await;
    if let Some(written) = written {
        // A disk that hangs holds up no report.
        let _ = tokio::time::timeout(LAST_LINES, written).await;
    }
    let report = match stop.reason() {
        // Ended from outside, handed back, or run elsewhere.
        Some(StopReason::Lost) => return None,
        // What ended well all the same has finished.
        Some(StopReason::Requested) if report.result.is_err() => Report {
            result: Err(Failure::stopped()),
            ..report
        },
        _ => report,
    };
    let report = match &report.result {
        // Who waits for it in Bananas reads JSON.
        Ok(output) if job.taken_over => Report {
            result: Ok(runner::as_json(output).unwrap_or_default().into()),
            ..report
        },
        _ => report,
    };
    // Before it is cut, so that no part of a secret is left over at an end.
    Some(report.masked(&job.env_vars.secrets()).bounded())
}

/// Opens the log file that the job asks for.
async fn open_log(setup: &Setup, job: &Arc<Job>) -> Result<Option<LogFile>, Failure> {
    let Some(path) = job.log_path.clone() else {
        return Ok(None);
    };
    let (folders, job) = (Arc::clone(&setup.log_folders), Arc::clone(job));
    let opened = tokio::task::spawn_blocking(move || folders.file(&path, &job.id)).await;
    let opened = opened.map_err(|error| {
        let message = format!("the log file could not be opened: {error}");
        Failure::new(FailureKind::Script, message)
    })?;
    opened.map(Some).map_err(LogPathError::into_failure)
}

/// A run whose runner is cut off if it does not return in time.
async fn bounded(runner: &dyn Runner, run: Run) -> Report {
    let (stop, grace) = (run.stop.clone(), run.grace);
    let overdue = run.deadline + grace + CUT_OFF;
    tokio::select! {
        biased;
        report = AssertUnwindSafe(runner.run(run)).catch_unwind() => {
            report.unwrap_or_else(|_| panicked())
        }
        () = tokio::time::sleep_until(overdue) => Report::failed(Failure::timeout()),
        () = ignored(&stop, grace) => Report::failed(Failure::stopped()),
    }
}

fn panicked() -> Report {
    Report::failed(Failure::new(
        FailureKind::Script,
        "the runner panicked; see the worker's log",
    ))
}

/// Returns when a runner has had all the time there is to heed the signal.
async fn ignored(stop: &StopSignal, grace: Duration) {
    if stop.stopped().await == StopReason::Requested {
        let _ = tokio::time::timeout(grace, stop.lost()).await;
    }
    tokio::time::sleep(CUT_OFF).await;
}
