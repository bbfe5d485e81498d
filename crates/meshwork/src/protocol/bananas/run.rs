//! Run: what becomes of one job that was taken, from its record to its report.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use meshwork_broker::bananas::{Back, Claimed, Failed, Found, Moved};
use meshwork_broker::{Backoff, Error};
use meshwork_model::bananas::Record;
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::time::Instant;
use tracing::Instrument;

use super::Foreign;
use super::state::{InHand, State};
use crate::failure::Reason;
use crate::protocol::handlers::Entry;
use crate::runner::{Run, StopReason};
use crate::span::{self, Subject};

/// How long after its time a runner may take to return before it is cut off.
const CUT_OFF: Duration = Duration::from_secs(5);
/// The longest error that stands in a record, in bytes, with the details of the failure: more belongs in a log.
const MAX_ERROR: usize = 64 * 1024;

/// Deals with a job, within the span of its run.
pub(super) async fn run(state: &State, in_hand: &InHand) {
    let claimed = &in_hand.claimed;
    let (id, worker) = (claimed.id(), state.setup.identity.worker());
    let mut subject = Subject {
        job: &id,
        queue: &claimed.list,
        ..Subject::default()
    };
    let Found::Job(record) = &claimed.found else {
        let (span, _) = subject.run(None, worker, None);
        return deal(state, in_hand).instrument(span).await;
    };
    let route = record.route();
    subject.kind = record.name();
    subject.route = route.as_ref().map(|route| route.as_str());
    subject.priority = Some(record.priority().as_str());
    let attempt = record.attempts().saturating_add(1);
    let (span, _) = subject.run(Some(attempt), worker, None);
    deal(state, in_hand).instrument(span).await;
}

async fn deal(state: &State, in_hand: &InHand) {
    span::dequeued();
    let claimed = &in_hand.claimed;
    let permanent = |what: String| Reason::new(FailureKind::Permanent, what);
    let record = match &claimed.found {
        Found::Job(record) => record,
        found => {
            let fault = found.fault().unwrap_or_default();
            return fail(state, in_hand, &permanent(fault), Duration::ZERO).await;
        }
    };
    if claimed.lost >= MAX_LOST {
        let lost = claimed.lost;
        let poison = format!("lost: {lost} workers went away while they ran this job");
        return fail(state, in_hand, &permanent(poison), Duration::ZERO).await;
    }
    // Somebody pushed it twice; an id is taken off a list once.
    if claimed.is_done() {
        tracing::debug!("it is done already");
        back(state, claimed, Back::Nowhere).await;
        return;
    }
    if is_elsewhere(state, claimed, record).await {
        return;
    }
    let Some(entry) = state.setup.handlers.get(record.name()) else {
        let what = format!("no handler for jobs of the name {:?}", record.name());
        let what = Reason::new(FailureKind::Script, what);
        return fail(state, in_hand, &what, Duration::ZERO).await;
    };
    let began = Instant::now();
    let report = execute(state, in_hand, entry, record).await;
    let (took, meter, name) = (began.elapsed(), &state.setup.meter, record.name());
    if in_hand.stop.reason() == Some(StopReason::Lost) {
        // Handed back, or run elsewhere already.
        meter.ran(name, took, None);
        return;
    }
    meter.ran(name, took, Some(&report));
    match report.result {
        Ok(output) => {
            let result = entry.result(output);
            let (broker, result) = (&state.setup.broker, result.as_deref());
            let tell = || state.reports.finish(broker, claimed, result, took);
            report_until(state, in_hand, "finish", tell).await;
        }
        Err(failure) => {
            let reason = Reason::of(&failure, &report.stderr);
            fail(state, in_hand, &reason, took).await;
        }
    }
}

/// Whether a job that stands on a list without a route has gone to where it belongs, or stays there.
async fn is_elsewhere(state: &State, claimed: &Claimed, record: &Record) -> bool {
    let setup = &state.setup;
    // What no worker could be asked for so is run wherever it is found. That of a route of this worker goes there too:
    // else the route's limits would not hold for it.
    let Some(route) = record.route().filter(|route| !route.is_default()) else {
        return false;
    };
    if !setup.broker.keys().is_plain(&claimed.list) {
        return false;
    }
    match setup
        .broker
        .move_to(claimed, &route, record.priority())
        .await
    {
        Ok(Moved::Moved | Moved::Stale) => return true,
        Ok(Moved::Nobody) => {}
        Err(error) => {
            tracing::warn!(%error, "not moved to the list of its route");
        }
    }
    if setup.foreign == Foreign::Run || setup.routes.keys().contains(&route) {
        return false;
    }
    state.let_plain_rest();
    back(state, claimed, Back::Last).await;
    true
}

/// Hands a job back; should that fail, its lease ends. False too if it was this worker's no more.
pub(super) async fn back(state: &State, claimed: &Claimed, to: Back) -> bool {
    let released = state.setup.broker.release(claimed, to).await;
    released.unwrap_or_else(|error| {
        tracing::warn!(job = claimed.id(), %error, "not handed back; its lease will end");
        false
    })
}

async fn execute(state: &State, in_hand: &InHand, entry: &Entry, record: &Record) -> Report {
    let mut job = entry.job(&in_hand.claimed.id(), record.payload());
    job.attempt = record.attempts().saturating_add(1);
    let deadline = Instant::now() + state.setup.timeout;
    let secrets = job.env_vars.secrets();
    let mut run = Run::new(Arc::new(job), deadline);
    run.stop = in_hand.stop.clone();
    let (overdue, stop) = (deadline + run.grace + CUT_OFF, in_hand.stop.clone());
    let lost = async {
        stop.lost().await;
        tokio::time::sleep(CUT_OFF).await;
    };
    let panicked = || {
        let what = "the handler panicked; see the worker's log";
        Report::failed(Failure::new(FailureKind::Script, what))
    };
    let report = tokio::select! {
        biased;
        report = AssertUnwindSafe(entry.runner.run(run)).catch_unwind() => {
            report.unwrap_or_else(|_| panicked())
        }
        () = tokio::time::sleep_until(overdue) => Report::failed(Failure::timeout()),
        () = lost => Report::failed(Failure::stopped()),
    };
    report.masked(&secrets)
}

async fn fail(state: &State, in_hand: &InHand, reason: &Reason, took: Duration) {
    let (setup, error) = (&state.setup, reason.whole(MAX_ERROR));
    let again = reason.kind.retryable();
    let tell = async || {
        let (claimed, most) = (&in_hand.claimed, setup.max_retries);
        let told = setup.broker.fail(claimed, &error, again, most, took).await;
        told.map_err(Arc::new)
    };
    match report_until(state, in_hand, "fail", tell).await {
        Reported::Told(Failed::Again(_)) => reason.log(true),
        Reported::Told(Failed::Dead) => reason.log(false),
        Reported::Told(Failed::Stale) | Reported::Lost => {}
        // When its lease has ended.
        Reported::Refused => reason.log(true),
    }
}

/// What became of a report.
enum Reported<T> {
    Told(T),
    /// The job is not this worker's any more.
    Lost,
    /// The server does not take it.
    Refused,
}

/// Says how a run ended, again and again while the server may hear it a little later and the job is this worker's.
async fn report_until<T, F>(
    state: &State,
    in_hand: &InHand,
    what: &'static str,
    tell: impl Fn() -> F,
) -> Reported<T>
where
    T: std::fmt::Debug,
    F: Future<Output = Result<T, Arc<Error>>>,
{
    let mut backoff = Backoff::new();
    loop {
        match tell().await {
            Ok(told) => {
                state.setup.broker.outages().succeeded("report");
                tracing::debug!(?told, what);
                return Reported::Told(told);
            }
            Err(error) if error.is_temporary() => {
                state.setup.meter.failed("report", &error);
                state.setup.broker.outages().failed("report", &error);
            }
            Err(error) => {
                tracing::error!(%error, "{what}: given up; its lease will end");
                return Reported::Refused;
            }
        }
        tokio::select! {
            () = in_hand.stop.lost() => return Reported::Lost,
            () = backoff.wait() => {}
        }
    }
}
