//! Cancels jobs that may run: after a failure, a cancellation, or the flow's timeout.

use std::time::Duration;

use meshwork_broker::flow::StepDone;
use meshwork_flow::run::{Decision, End};
use meshwork_model::state::Status;

use super::FlowError;
use super::results::ResultSlot;
use super::step::Step;
use super::view::View;

/// Time that a runner without a lease has to end a job after a cancel request, as for Meshwork's scripts after SIGTERM.
/// The runner may ignore the request, and the flow does not wait longer.
const PLAIN_GRACE: Duration = Duration::from_secs(5);

impl Step<'_> {
    /// Ends a job that no worker runs together with its cancellation, in the same step.
    pub(super) fn at_once(&self, decision: &Decision) -> Decision {
        match decision {
            Decision::Stop { job, item } if !self.plan.jobs[*job].has_worker() => {
                let (job, item, end) = (*job, *item, End::Cancelled);
                Decision::Finalize { job, item, end }
            }
            other => other.clone(),
        }
    }

    /// Cancels a job that may run.
    pub(super) async fn stop(
        &mut self,
        view: &View,
        at: ResultSlot,
    ) -> Result<StepDone, FlowError> {
        let Some(key) = view.job(self.plan, at) else {
            return Ok(StepDone::Done);
        };
        // A job that this step released has to be stored before it can be cancelled.
        let done = self.flush().await?;
        let id = self.flows.job_id(key);
        if done == StepDone::Done
            && let Some(job) = self.flows.broker().inspect(&id).await?
        {
            let plain = job.status() == Some(Status::Started) && !job.leased;
            let force = plain && self.is_grace_over(view);
            self.flows.broker().cancel(&job, "stopped", force).await?;
        }
        Ok(done)
    }

    /// Returns true if the time of plain runners to stop is over.
    fn is_grace_over(&mut self, view: &View) -> bool {
        let halted = view.number("mw_halted");
        if halted.is_none() {
            self.moves.note(&[("mw_halted", self.now.to_string())]);
        }
        let until = halted.unwrap_or(self.now) + PLAIN_GRACE.as_millis() as u64;
        self.look_at(Some(until));
        until <= self.now
    }
}
