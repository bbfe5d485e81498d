//! One run of a task in a process of its app.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use meshwork_model::outcome::{Failure, FailureKind, Report};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::{Run, StopReason};
use super::Inner;
use super::active::{Active, Outcome, Output};
use super::process::{Process, outcome};
use super::suspects::ALONE;
use super::wire::{CancelReason, RunTask, ToApp};

/// Grace of a run whose lease is lost: the job may already run elsewhere.
const LOST_GRACE: Duration = Duration::from_secs(1);

/// Reason for the end of a run that has not ended by itself.
enum Over {
    Timeout,
    Cancelled,
    Lost,
}

impl Over {
    fn reason(&self) -> CancelReason {
        match self {
            Self::Timeout => CancelReason::Timeout,
            Self::Cancelled => CancelReason::Cancelled,
            Self::Lost => CancelReason::Lost,
        }
    }

    fn failure(&self) -> Failure {
        match self {
            Self::Timeout => Failure::timeout(),
            Self::Cancelled | Self::Lost => Failure::stopped(),
        }
    }
}

/// Waits until a run has to end.
async fn over(run: &Run, dropped: &CancellationToken) -> Over {
    tokio::select! {
        () = tokio::time::sleep_until(run.deadline) => Over::Timeout,
        () = dropped.cancelled() => Over::Lost,
        reason = run.stop.stopped() => match reason {
            StopReason::Requested => Over::Cancelled,
            StopReason::Lost => Over::Lost,
        },
    }
}

/// Runs a task.
pub(super) async fn run(
    app: Arc<Inner>,
    run: Run,
    dropped: CancellationToken,
) -> Result<Report, Failure> {
    let payload: Box<RawValue> = serde_json::from_slice(&run.job.script).map_err(|error| {
        let message = format!("the arguments of the task are not JSON: {error}");
        Failure::new(FailureKind::Permanent, message)
    })?;
    let is_suspect = app.suspects.contains(&run.job.id);
    let slot = async {
        match is_suspect {
            true => app.pool.slot_alone().await,
            false => app.pool.slot().await,
        }
    };
    let slot = tokio::select! {
        slot = slot => slot,
        over = over(&run, &dropped) => return Err(over.failure()),
    };
    let mut slot = slot.map_err(|fault| Failure::new(FailureKind::NotStarted, fault))?;
    if !run.lease.allows_start() {
        let message = "the lease of the job is over";
        return Err(Failure::new(FailureKind::NotStarted, message));
    }
    let output = Output::of(&run.log);
    let process = Arc::clone(&slot.process);
    let ends = in_process(&process, &run, &payload, (&output, &dropped));
    let mut ends = pin!(ends);
    let ended = match tokio::time::timeout(ALONE, &mut ends).await {
        Ok(ended) => ended,
        Err(_) => {
            slot.share();
            ends.await
        }
    };
    drop(slot);
    let result = match ended {
        Outcome::Ended(result) => {
            app.suspects.remove(&run.job.id);
            result
        }
        Outcome::Died {
            how,
            together,
            for_other,
        } => Err(app.died(&run.job.id, &how, (together, for_other))),
    };
    let report = match result {
        Ok(result) => Report::done(result),
        Err(failure) => Report::failed(failure),
    };
    Ok(output.end(report))
}

/// Runs the task in a process.
async fn in_process(
    process: &Process,
    run: &Run,
    payload: &RawValue,
    (output, dropped): (&Output, &CancellationToken),
) -> Outcome {
    let (end, mut ended) = outcome();
    let number = match process.begin(Active::new(run, output.clone(), end)) {
        Ok(number) => number,
        // It has ended since the slot was taken: nothing has run.
        Err(how) => return gone(how),
    };
    let message = task(run, number, payload);
    let sent = async {
        process.send(&ToApp::Run(message)).await;
        (&mut ended).await
    };
    let over = tokio::select! {
        ended = sent => return ended.unwrap_or_else(|_| gone(String::new())),
        over = over(run, dropped) => over,
    };
    end_run(process, number, (&over, grace(&over, run)), &mut ended).await;
    // A result comes too late in any case.
    Outcome::Ended(Err(over.failure()))
}

fn gone(how: String) -> Outcome {
    Outcome::Died {
        how,
        together: 0,
        for_other: true,
    }
}

fn grace(over: &Over, run: &Run) -> Duration {
    match over {
        Over::Timeout | Over::Cancelled => run.grace,
        Over::Lost => LOST_GRACE.min(run.grace),
    }
}

/// Asks a run to end, and kills its process if it does not.
async fn end_run(
    process: &Process,
    number: u64,
    (over, grace): (&Over, Duration),
    ended: &mut oneshot::Receiver<Outcome>,
) {
    let reason = over.reason();
    let cancelled = async {
        process
            .send(&ToApp::Cancel {
                run: number,
                reason,
            })
            .await;
        let _ = ended.await;
    };
    if tokio::time::timeout(grace, cancelled).await.is_err() {
        process.kill_for(number).await;
    }
}

fn task<'a>(run: &'a Run, number: u64, payload: &'a RawValue) -> RunTask<'a> {
    let job = &run.job;
    let inputs = match run.inputs.is_empty() {
        true => None,
        false => serde_json::from_slice(&run.inputs.file()).ok(),
    };
    RunTask {
        run: number,
        id: &job.id,
        task: job.script_type.as_deref().unwrap_or_default(),
        attempt: job.attempt,
        payload,
        timeout: (run.deadline - Instant::now()).as_secs_f64(),
        input: job
            .input
            .as_deref()
            .and_then(|input| str::from_utf8(input).ok()),
        caller: &job.caller_id,
        env: job
            .env_vars
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect::<BTreeMap<_, _>>(),
        inputs,
        traceparent: run.trace.as_ref().map(ToString::to_string),
    }
}
