//! `retry`: runs some jobs of an ended flow again.
//!
//! The request is stored in the flow's record. A step executes it in commits that can be repeated: places that already
//! have the new generation do not change. So another step continues after a crash.

use meshwork_broker::flow::{MAX_MOVES, Retried, StepDone};
use meshwork_flow::run::{Decider, FlowEnd, ItemRun, JobRun, RetryError, RetryFrom, renew, retry};
use meshwork_macros::boxed;
use meshwork_model::keys::context::{ActorId, FlowId};
use serde_json::json;

use super::adopt::PLAIN;
use super::node::{self, place};
use super::step::Step;
use super::view::{self, View};
use super::{FlowClient, FlowError};

impl FlowClient {
    /// Runs these jobs of an ended flow again, with all jobs that depend on them or that the end of the flow cancelled
    /// or skipped. They have all their attempts. All other jobs keep their results. The flow's timeout begins again.
    /// From now on, `actor` counts as a submitter for `four_eyes`.
    ///
    /// # Errors
    /// The flow or a job does not exist; the flow has not ended; a job was undone by its compensation and would not run
    /// again; retention has deleted a job; or a call to the server fails. Nothing has changed then.
    #[boxed]
    pub async fn retry(
        &self,
        id: FlowId,
        actor: ActorId,
        from: &[RetryFrom],
    ) -> Result<(), FlowError> {
        let refused = |why| match why {
            RetryError::NotEnded => FlowError::NotEnded(id),
            why => FlowError::Retry { flow: id, why },
        };
        let plan = view::plan(&self.flows, id).await?;
        let decider = Decider::new(&plan).map_err(|error| FlowError::Plan(error.to_string()))?;
        let mut view = View::read(&self.flows, id, &plan).await?;
        if view.record.contains_key(PLAIN) {
            return Err(FlowError::Plain(id));
        }
        view.state.outcome = view.is_ended().then(FlowEnd::default);
        let from = retry(&decider, &mut view.state, from).map_err(refused)?;
        self.all_there(&view).await?;
        let from = json!(from).to_string();
        match self.flows.retry(id, actor, &from).await? {
            Retried::Retrying => Ok(()),
            Retried::Unfinished => Err(FlowError::NotEnded(id)),
            Retried::Missing => Err(FlowError::NoFlow(id)),
        }
    }

    /// Refuses a flow of which retention has deleted a job.
    async fn all_there(&self, view: &View) -> Result<(), FlowError> {
        let jobs: Vec<(&String, u32)> = view.names.iter().map(|(name, id)| (name, *id)).collect();
        for jobs in jobs.chunks(MAX_MOVES) {
            let caller = view.caller;
            let key = |(_, id): &(&String, u32)| meshwork_model::keys::context::JobKey {
                caller,
                id: *id,
            };
            let keys: Vec<_> = jobs.iter().map(key).collect();
            let found = self.flows.job_fields(&keys, &["status"]).await?;
            let gone = |fields: &Vec<Option<Vec<u8>>>| fields.iter().all(Option::is_none);
            if let Some(at) = found.iter().position(gone) {
                let (flow, job) = (view.id, jobs[at].0.clone());
                return Err(FlowError::JobGone { flow, job });
            }
        }
        Ok(())
    }
}

impl Step<'_> {
    /// Executes a retry: gives the new generation to all places that it includes.
    pub(super) async fn renew(
        &mut self,
        decider: &Decider<'_>,
        view: &View,
        from: &[RetryFrom],
    ) -> Result<StepDone, FlowError> {
        // Retention may not delete the jobs of a running flow.
        for keys in view.keys(self.flows).chunks(MAX_MOVES - 1) {
            self.moves.hold(keys);
            let done = self.flush().await?;
            if done != StepDone::Done {
                return Ok(done);
            }
        }
        let mut next = view.state.clone();
        if let Err(error) = renew(decider, &mut next, from) {
            tracing::warn!(flow = %view.id, %error, "flow not retried");
        }
        let mut gone = Vec::new();
        for (job, run) in next.jobs.iter().enumerate() {
            if *run == view.state.jobs[job] {
                continue;
            }
            let done = self.renew_job(view, job, run, &mut gone).await?;
            if done != StepDone::Done {
                return Ok(done);
            }
        }
        let jobs = view.record.get("jobs").map_or("[]", String::as_str);
        let mut jobs: Vec<u32> = serde_json::from_str(jobs).unwrap_or_default();
        jobs.retain(|id| !gone.contains(id) && view.names.values().any(|known| known == id));
        self.moves
            .renewed(&json!(jobs).to_string(), self.plan.timeout_ms);
        match self.flush().await? {
            StepDone::Done => Ok(StepDone::Again),
            other => Ok(other),
        }
    }

    /// Gives the new generation to a job and its items. The job comes last: a repeated step skips a job that has the
    /// new generation.
    async fn renew_job(
        &mut self,
        view: &View,
        job: usize,
        run: &JobRun,
        gone: &mut Vec<u32>,
    ) -> Result<StepDone, FlowError> {
        let before = view.state.jobs[job].items.iter().flatten().enumerate();
        for (item, old) in before {
            let new = run.items.as_ref().and_then(|items| items.get(item));
            let done = match new {
                Some(new) if new == old => StepDone::Done,
                Some(_) => self.renew_place(view, (job, Some(item)), run).await?,
                None => self.forget(view, (job, item), gone).await?,
            };
            if done != StepDone::Done {
                return Ok(done);
            }
        }
        self.renew_place(view, (job, None), run).await
    }

    async fn renew_place(
        &mut self,
        view: &View,
        at: (usize, Option<usize>),
        run: &JobRun,
    ) -> Result<StepDone, FlowError> {
        let (node, generation) = (place(at.0, at.1), run.generation);
        let seen = view.nodes.get(&node).map_or("", String::as_str);
        let key = view.job(self.plan, at);
        let key = key.map(|key| self.flows.keys().job(key));
        let (then, status) = match (&run.items, at.1) {
            (Some(items), None) => (format!("g {generation} {}", items.len()), "started"),
            // An item without a record is stored when it may run.
            (_, Some(_)) if key.is_none() => (String::new(), ""),
            _ => (
                format!("w {generation}"),
                node::waiting(&self.plan.jobs[at.0]),
            ),
        };
        let key = key.unwrap_or_default();
        let items = run.items.as_ref().filter(|_| at.1.is_none());
        let open = |items: &Vec<ItemRun>| {
            items
                .iter()
                .filter(|item| item.phase.end().is_none())
                .count()
        };
        let open = items.map(open);
        self.moves
            .renew(&node, (seen, &then), generation, (&key, status), open);
        self.flush_if_full().await
    }

    /// Deletes an item of a `foreach`, which is expanded again.
    async fn forget(
        &mut self,
        view: &View,
        (job, item): (usize, usize),
        gone: &mut Vec<u32>,
    ) -> Result<StepDone, FlowError> {
        let at = (job, Some(item));
        if let Some(key) = view.job(self.plan, at) {
            let broker = self.flows.broker();
            if let Some(record) = broker.inspect(&self.flows.job_id(key)).await? {
                self.flows.delete_job(&record).await?;
            }
            gone.push(key.id);
        }
        let name = node::name(&self.plan.jobs[job], Some(item));
        self.moves.forget(&place(job, Some(item)), &name);
        self.flush_if_full().await
    }
}
