//! Slot: a job that a worker has in its hands, from claim to report, and the task that runs it.

use std::sync::Arc;

use meshwork_broker::Claimed;
use meshwork_model::outcome::{Failure, Report};
use meshwork_model::trace::TraceContext;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Setup;
use super::report::Ran;
use super::turn::Place;
use super::{execute, report};
use crate::runner::{Announced, StopReason, StopSignal};
use crate::span;

/// A job in hand.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) claimed: Arc<Claimed>,
    pub(super) stop: StopSignal,
    /// Its place among what is held.
    pub(super) place: u64,
    /// It counts as running until its report is told.
    pub(super) _running: TaskTrackerToken,
}

impl Slot {
    pub(super) fn id(&self) -> &str {
        &self.claimed.job.id
    }
}

/// A run is over: with a result to be told, or nothing more to say.
#[derive(Debug)]
pub(super) enum Ended {
    Ran(Ran),
    Told(Slot),
}

/// Gives a slot back in any case.
pub(super) struct Berth {
    slot: Option<Slot>,
    ended: UnboundedSender<Ended>,
}

impl Berth {
    pub(super) fn new(slot: Slot, ended: UnboundedSender<Ended>) -> Self {
        Self {
            slot: Some(slot),
            ended,
        }
    }

    fn send(&self, ended: Ended) {
        // The pull loop waits for all runs, unless its runtime is gone.
        let _ = self.ended.send(ended);
    }
}

impl Drop for Berth {
    /// The run did not come to its end: its lease does.
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.send(Ended::Told(slot));
        }
    }
}

/// What a run has with it: its trace, and its word to a group that it is coming.
pub(super) type With = (Option<TraceContext>, Option<Announced>);

/// One job from claim to report.
pub(super) async fn work(setup: Arc<Setup>, mut berth: Berth, place: Place, with: With) {
    let Some(slot) = &berth.slot else { return };
    span::dequeued();
    let outcome = tokio::select! {
        biased;
        turn = place.turn() => {
            let (began, claimed) = (Instant::now(), &slot.claimed);
            let outcome = execute::execute(&setup, claimed, &slot.stop, with).await;
            setup.meter.ran(&claimed.queue, began.elapsed(), outcome.as_ref());
            span::ended(outcome.as_ref());
            drop(turn);
            outcome
        }
        // It has not begun.
        reason = slot.stop.stopped() => match reason {
            StopReason::Requested => Some(Report::failed(Failure::stopped())),
            StopReason::Lost => None,
        },
    };
    drop(place);
    let Some(outcome) = outcome else { return };
    let Report {
        result,
        stdout,
        stderr,
    } = outcome;
    match result {
        // Told while the slot is still the berth's, so that it is given back in any case.
        Err(failure) => report::fail(&setup, slot, &failure, (&stdout, &stderr)).await,
        Ok(output) => {
            if let Some(slot) = berth.slot.take() {
                berth.send(Ended::Ran(Ran::new(slot, output, (stdout, stderr))));
            }
        }
    }
}
