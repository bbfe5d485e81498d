//! Executor: runs one job within its time limits.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use meshwork_broker::Backoff;
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::sandbox::RunUsage;
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;

use super::engine::Engine;
use super::log_forwarder::{self, LogForwarder};
use super::logfile::{self, LogFile, LogFolders, LogPathError};
use super::protocol::{Prepared, Protocol, Step};
use super::task::{LeasedJob, REPEAT_FOR};
use crate::span;
use meshwork_runtime::{Announced, Run, Runtime, StopReason, StopSignal};

/// Time after the grace until a run is aborted that ignores its cancel signal, so that it does not keep its slot.
pub(crate) const CUT_OFF: Duration = Duration::from_secs(5);

/// Longest wait for the last lines of a log file.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Trace of a run, and its place in a batch of its handler.
pub(super) type RunContext = (Option<TraceContext>, Option<Announced>);

/// Runs a job. Returns `None` without a report: the protocol has settled the job, or another worker has it.
pub(super) async fn execute<P: Protocol>(
    engine: &Arc<Engine<P>>,
    task: &LeasedJob<P::Job>,
    (trace, reserved): RunContext,
) -> Option<(Report, Duration)> {
    let (protocol, job) = (&engine.protocol, &task.job);
    let (report, took) = match prepare(engine, task, trace.as_ref()).await {
        Step::Settled | Step::Again(_) => return None,
        Step::End(report) => (Some(report), Duration::ZERO),
        Step::Run(prepared) => {
            let began = Instant::now();
            let report = run(engine, task, *prepared, (trace, reserved)).await;
            (report, began.elapsed())
        }
    };
    if let Some(kind) = protocol.kind(job)
        && !task.lease.has_refused()
    {
        engine.meter.ran(&kind, took, report.as_ref());
    }
    span::ended(report.as_ref());
    report.map(|report| (report, took))
}

/// Returns the next step for a job. A job whose preparation panics fails permanently, since it would panic on every
/// worker.
async fn prepare<P: Protocol>(
    engine: &Engine<P>,
    task: &LeasedJob<P::Job>,
    trace: Option<&TraceContext>,
) -> Step {
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    loop {
        let step = engine.protocol.prepare(&engine.config, &task.job, trace);
        match AssertUnwindSafe(step).catch_unwind().await {
            Ok(Step::Again(error)) if error.is_repeated() && Instant::now() < until => {
                engine.failed(("prepare", "prepare"), &error);
                tokio::select! {
                    () = backoff.wait() => {}
                    () = task.cancel.lost() => return Step::Settled,
                }
            }
            Ok(Step::Again(error)) => {
                tracing::error!(job = %P::id(&task.job), %error, "job not started: its lease will expire");
                return Step::Settled;
            }
            Ok(step) => return step,
            Err(_) => return Step::End(unprepared()),
        }
    }
}

/// Returns the report of a job whose preparation panicked.
pub(super) fn unprepared() -> Report {
    let message = "the worker panicked when it read the job; see its log";
    Report::failed(Failure::new(FailureKind::Permanent, message))
}

/// Runs a prepared job. Returns `None` if the job was lost meanwhile, or its lease was over before its start.
async fn run<P: Protocol>(
    engine: &Arc<Engine<P>>,
    task: &LeasedJob<P::Job>,
    prepared: Prepared,
    (trace, reserved): RunContext,
) -> Option<Report> {
    let Prepared {
        runtime,
        mut run,
        timeout,
    } = prepared;
    let job = Arc::clone(&run.job);
    let log_file = match open_log(&engine.log_folders, &job).await {
        Ok(log_file) => log_file,
        Err(failure) => return Some(Report::failed(failure)),
    };
    // The preparation may have waited for the server, or the process was suspended.
    if !task.lease.allows_start() {
        return None;
    }
    run.deadline = Instant::now() + timeout;
    run.stop = task.cancel.clone();
    run.lease = task.lease.clone();
    run.grace = engine.config.cancel_grace;
    run.trace = trace;
    run.announced = reserved;
    let sandbox = run.confinement.effective();
    let (log, usage) = (run.log.clone(), Arc::clone(&run.usage));
    let written = log_file.map(|file| tokio::spawn(file.keep(log.drain(logfile::CAPACITY))));
    let bounded = bounded(&*runtime, run);
    let report = if P::KEEPS_LOGS {
        let mut forwarder = LogForwarder::new(log.drain(log_forwarder::CAPACITY));
        let report = {
            tokio::pin!(bounded);
            tokio::select! {
                biased;
                report = &mut bounded => report,
                () = forwarder.begins(engine, &task.job) => bounded.await,
            }
        };
        log.close();
        forwarder.ended(engine, &task.job).await;
        if let Some(usage) = usage.get() {
            if let Some(kind) = engine.protocol.kind(&task.job) {
                engine.meter.used(&kind, usage);
            }
            let usage = RunUsage {
                sandbox,
                usage: *usage,
            };
            log_forwarder::record_usage(engine, &task.job, &usage).await;
        }
        report
    } else {
        let report = bounded.await;
        log.close();
        report
    };
    if let Some(written) = written {
        // A blocked disk must not delay the report.
        let _ = tokio::time::timeout(LAST_LINES, written).await;
    }
    let report = match task.cancel.reason() {
        // Cancelled by force, released, or reclaimed.
        Some(StopReason::Lost) => return None,
        _ if task.lease.has_refused() => return None,
        // A run that ended well in spite of the request has finished.
        Some(StopReason::Requested) if report.result.is_err() => Report {
            result: Err(Failure::stopped()),
            ..report
        },
        _ => report,
    };
    // Secrets are masked before texts are cut, so that no part of a secret remains at the cut.
    let report = report.masked(&job.env_vars.secrets());
    Some(engine.protocol.encode(&task.job, report))
}

/// Opens the log file of a job, if the job has one.
async fn open_log(folders: &Arc<LogFolders>, job: &Arc<Job>) -> Result<Option<LogFile>, Failure> {
    let Some(path) = job.log_path.clone() else {
        return Ok(None);
    };
    let (folders, job) = (Arc::clone(folders), Arc::clone(job));
    let opened = tokio::task::spawn_blocking(move || folders.file(&path, &job.id)).await;
    let opened = opened.map_err(|error| {
        let message = format!("the log file could not be opened: {error}");
        Failure::new(FailureKind::Script, message)
    })?;
    opened.map(Some).map_err(LogPathError::into_failure)
}

/// Runs a job, and aborts it if it does not end in time.
pub async fn bounded(runtime: &dyn Runtime, run: Run) -> Report {
    let (stop, grace) = (run.stop.clone(), run.grace);
    let overdue = run.deadline + grace + CUT_OFF;
    tokio::select! {
        biased;
        report = AssertUnwindSafe(runtime.run(run)).catch_unwind() => {
            report.unwrap_or_else(|_| panicked())
        }
        () = tokio::time::sleep_until(overdue) => Report::failed(Failure::timeout()),
        () = ignored(&stop, grace) => Report::failed(Failure::stopped()),
    }
}

fn panicked() -> Report {
    Report::failed(Failure::new(
        FailureKind::Script,
        "the runtime panicked; see the worker's log",
    ))
}

/// Returns when a run has ignored its cancel signal for the grace and [`CUT_OFF`].
async fn ignored(stop: &StopSignal, grace: Duration) {
    if stop.stopped().await == StopReason::Requested {
        let _ = tokio::time::timeout(grace, stop.lost()).await;
    }
    tokio::time::sleep(CUT_OFF).await;
}
