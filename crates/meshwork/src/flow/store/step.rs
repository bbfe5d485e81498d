//! A step: decides what a changed flow does next, and commits the decisions.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use meshwork_broker::flow::{FlowFields, FlowLease, Flows, MAX_MOVES, Moves, StepDone};
use meshwork_flow::run::{Decider, Decision, End, FlowEnd, Prepared, Stop};
use meshwork_model::context::field::DEPENDENDS;
use meshwork_model::flow::Plan;
use meshwork_model::flow::limits::MAX_ITEMS;
use meshwork_model::job::field::INPUT_NAMES;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use serde_json::{Value, json};

use super::FlowError;
use super::adopt::{self, PLAIN, TakenUp};
use super::items;
use super::node::{self, place};
use super::results::{self, ResultSlot, Results};
use super::scheduled;
use super::sender::{SENT, SINCE, Sender};
use super::view::{self, View};
use super::without_plan;

/// Approximate limit of the bytes in one commit, which blocks all other calls of the server.
const MOST_BYTES: usize = 1024 * 1024;
/// Pause between two polls of running jobs: foreign workers publish no ends.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// Field of a flow with the outputs that are JSON, as a list of names. All others are text.
pub(super) const JSON_OUTPUTS: &str = "mw_json_outputs";

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// The flow waits for its jobs, or has ended.
    Rests,
    /// Another worker has the flow.
    Lost,
}

/// One step of a flow under a lease.
pub(super) struct Step<'s> {
    pub(super) flows: &'s Flows,
    lease: &'s FlowLease,
    pub(super) plan: &'s Plan,
    /// Signer of messages, if this process has the key of an actor.
    pub(super) sender: Option<&'s Sender>,
    pub(super) moves: Moves,
    /// Time of the last poll, in milliseconds since 1970.
    pub(super) now: u64,
    /// Earliest deadline of an open approval or a delay.
    pub(super) next: Option<u64>,
}

/// Decides and commits until the flow waits for its jobs or has ended.
pub(super) async fn run(
    flows: &Flows,
    lease: &FlowLease,
    sender: Option<&Sender>,
) -> Result<StepEnd, FlowError> {
    let record = flows.record(lease.id).await?;
    if scheduled::is_without_jobs(&record) {
        match scheduled::complete(flows, lease, &record).await? {
            StepDone::Done => {}
            StepDone::Stale => return Ok(StepEnd::Lost),
            _ => return Ok(StepEnd::Rests),
        }
    } else if !record.contains_key("status") {
        // The submission was never completed: its client is gone.
        delete(flows, lease.id, &record).await?;
        return Ok(StepEnd::Rests);
    }
    let plan = loop {
        if let Some(text) = flows.plan(lease.id).await? {
            break view::read_plan(&text)?;
        }
        if !adopt::is_plain(&record) {
            let is_ours = without_plan::end(flows, lease).await?;
            return Ok(if is_ours {
                StepEnd::Rests
            } else {
                StepEnd::Lost
            });
        }
        match adopt::take_up(flows, lease).await? {
            TakenUp::Yes | TakenUp::Again => {}
            TakenUp::Rests => return Ok(StepEnd::Rests),
            TakenUp::Lost => return Ok(StepEnd::Lost),
        }
    };
    let decider = Decider::new(&plan).map_err(|error| FlowError::Plan(error.to_string()))?;
    let moves = Moves::default();
    let mut step = Step {
        flows,
        lease,
        plan: &plan,
        sender,
        moves,
        now: 0,
        next: None,
    };
    loop {
        let mut view = View::read(flows, lease.id, &plan).await?;
        let done = if let Some(from) = view.retry() {
            step.renew(&decider, &view, &from).await?
        } else if view.is_ended() {
            step.close(&view).await?
        } else {
            step.look(&mut view).await?;
            match step.decide(&decider, &mut view).await? {
                StepDone::Done => step.rest(&view).await?,
                other => other,
            }
        };
        match done {
            StepDone::Done => return Ok(StepEnd::Rests),
            StepDone::Stale => return Ok(StepEnd::Lost),
            StepDone::Again => {}
            StepDone::NoNumbers => return Err(FlowError::NoNumbers("jobs")),
        }
    }
}

impl Step<'_> {
    /// Commits the decisions so far. A repeated commit changes nothing.
    pub(super) async fn flush(&mut self) -> Result<StepDone, FlowError> {
        if self.moves.is_empty() {
            return Ok(StepDone::Done);
        }
        let moves = std::mem::take(&mut self.moves);
        loop {
            match self.flows.commit(self.lease, &moves).await? {
                StepDone::Again => {}
                done => return Ok(done),
            }
        }
    }

    pub(super) async fn flush_if_full(&mut self) -> Result<StepDone, FlowError> {
        // The last move of a step, `rest`, has to fit too.
        if self.moves.len() + 1 < MAX_MOVES && self.moves.bytes() < MOST_BYTES {
            return Ok(StepDone::Done);
        }
        self.flush().await
    }

    /// Schedules the next poll for `until`, if that is earlier.
    pub(super) fn look_at(&mut self, until: Option<u64>) {
        let first = self.next.into_iter().chain(until).min();
        self.next = first;
    }

    pub(super) fn generation(&self, view: &View, (job, item): ResultSlot) -> u32 {
        let run = &view.state.jobs[job];
        let of_item = item.and_then(|item| run.items.as_ref()?.get(item));
        of_item.map_or(run.generation, |item| item.generation)
    }

    /// Decides until no decision is left, and commits the decisions.
    async fn decide(
        &mut self,
        decider: &Decider<'_>,
        view: &mut View,
    ) -> Result<StepDone, FlowError> {
        let mut results = Results::default();
        loop {
            if let Err(error) = results.load(self.flows, decider, self.plan, view).await {
                let FlowError::Plan(why) = error else {
                    return Err(error);
                };
                if view.state.stop.is_none() {
                    view.state.stop(Stop::Cancelled);
                    view.record.insert("mw_fault".to_owned(), why.clone());
                    let stop = ("mw_stop", "fault".to_owned());
                    self.moves.note(&[stop, ("mw_fault", why)]);
                }
            }
            decider.fill_items(&mut view.state);
            let decisions = decider.decide(&view.state);
            let mut stopped = false;
            for decision in &decisions {
                self.recall(view, decision).await?;
                let decision = &self.at_once(decision);
                match self.act(view, decision, &results).await? {
                    StepDone::Done => {}
                    other => return Ok(other),
                }
                view.state.apply(decision);
                stopped |= matches!(decision, Decision::Stop { .. });
                match self.flush_if_full().await? {
                    StepDone::Done => {}
                    other => return Ok(other),
                }
            }
            if view.state.outcome.is_some() {
                let done = self.flush().await?;
                // The next round gives the jobs to retention.
                return Ok(if done == StepDone::Done {
                    StepDone::Again
                } else {
                    done
                });
            }
            if decisions.is_empty() || stopped {
                return self.flush().await;
            }
        }
    }

    /// Adds a decision to the next commit.
    async fn act(
        &mut self,
        view: &mut View,
        decision: &Decision,
        results: &Results,
    ) -> Result<StepDone, FlowError> {
        match decision {
            Decision::Release {
                job,
                item,
                generation,
                work,
            } => self.release(view, (*job, *item), *generation, work)?,
            Decision::Expand { job, items } => self.expand(view, *job, items),
            Decision::Finalize { job, item, end } => {
                let at = (*job, *item);
                self.finalize(view, at, end, view.job(self.plan, at));
            }
            Decision::Stop { job, item } => return self.stop(view, (*job, *item)).await,
            Decision::Finish(end) => self.finish(view, end, results),
        }
        Ok(StepDone::Done)
    }

    fn release(
        &mut self,
        view: &View,
        at: ResultSlot,
        generation: u32,
        work: &Prepared,
    ) -> Result<(), FlowError> {
        let (job, item) = at;
        let node = &self.plan.jobs[job];
        let value = item.and_then(|item| view.state.jobs[job].items.as_ref()?.get(item));
        let item_value = value.map(|of| (&of.value, item.unwrap_or(0)));
        let mut fields = node::released(node, work, item_value, view.id.0);
        fields.extend(self.inputs(view, job));
        let until = node::waits_for(node, self.now);
        self.look_at(until);
        fields.extend(until.map(|ms| ("mw_until", ms.to_string().into_bytes())));
        if node.waits_for_message() {
            fields.push((SENT, Vec::new()));
            fields.push((SINCE, self.now.to_string().into_bytes()));
            // The next step sends the message, once this one is stored.
            self.look_at(Some(self.now));
        }
        let new = node::stored(self.flows, self.plan, view.caller, at, generation)?;
        match view.job(self.plan, at) {
            Some(key) => {
                let queue = match node.has_worker() {
                    false => String::new(),
                    true => new.job.route.queue(self.flows.broker().keys()),
                };
                let key = self.flows.keys().job(key);
                self.moves
                    .release(&place(job, item), generation, &key, &queue, fields);
            }
            None => {
                let mut new = new;
                let env = fields.iter().position(|(name, _)| *name == "env_vars");
                if let Some((_, env)) = env.map(|at| fields.swap_remove(at)) {
                    let env: BTreeMap<String, String> =
                        serde_json::from_slice(&env).unwrap_or_default();
                    new.job.env_vars = env.into_iter().collect();
                }
                new.waits = false;
                new.more = fields;
                self.moves.add(self.flows, view.caller, &new);
            }
        }
        Ok(())
    }

    /// Returns the fields that name the jobs whose results a job reads: its prerequisites, and the job that it
    /// compensates.
    fn inputs(&self, view: &View, job: usize) -> [(&'static str, Vec<u8>); 2] {
        let node = &self.plan.jobs[job];
        let (mut numbers, mut names) = (Vec::new(), BTreeMap::new());
        for name in node.needs.iter().chain(&node.compensates) {
            if let Some(id) = view.names.get(name.as_str()).copied() {
                let caller = view.caller;
                numbers.push(id);
                names.insert(name.as_str(), self.flows.keys().job(JobKey { caller, id }));
            }
        }
        [
            (DEPENDENDS, json!(numbers).to_string().into_bytes()),
            (INPUT_NAMES, json!(names).to_string().into_bytes()),
        ]
    }

    fn expand(&mut self, view: &mut View, job: usize, items: &[Value]) {
        let run = &view.state.jobs[job];
        let others = view.names.len().saturating_sub(self.plan.jobs.len());
        if others + items.len() > MAX_ITEMS {
            let why = format!(
                "the flow has {others} items, and {} more: at most {MAX_ITEMS} are allowed",
                items.len()
            );
            self.finalize(
                view,
                (job, None),
                &End::Failed(why),
                view.job(self.plan, (job, None)),
            );
            return;
        }
        let key = view.job(self.plan, (job, None));
        let key = key
            .map(|key| self.flows.keys().job(key))
            .unwrap_or_default();
        self.moves
            .expand(&place(job, None), run.generation, items.len(), &key);
        let seen = format!("g {} {}", run.generation, items.len());
        view.nodes.insert(place(job, None), seen);
    }

    pub(super) fn finalize(&mut self, view: &View, at: ResultSlot, end: &End, key: Option<JobKey>) {
        let node = place(at.0, at.1);
        let seen = view.nodes.get(&node).map_or("", String::as_str);
        let result = |value: &Value| {
            json!({"result": value.to_string()})
                .to_string()
                .into_bytes()
        };
        let (how, status, text) = match end {
            End::Finished(Value::Null) => ("f", "finished", b"{}".to_vec()),
            End::Finished(value) => ("f", "finished", result(value)),
            End::Failed(error) => ("e", "error", error.clone().into_bytes()),
            End::Cancelled => ("c", "error", b"stopped".to_vec()),
            End::Skipped => ("s", "finished", b"{}".to_vec()),
        };
        let key = key
            .map(|key| self.flows.keys().job(key))
            .unwrap_or_default();
        let how = (how, self.generation(view, at));
        let moves = &mut self.moves;
        match items::partial(view, at, end) {
            Some(items) => moves.finalize_items(&node, seen, how, (&key, &text), items),
            None => moves.finalize(&node, seen, how, (&key, status, &text)),
        }
    }

    fn finish(&mut self, view: &View, end: &FlowEnd, results: &Results) {
        let mut result: BTreeMap<&str, String> = BTreeMap::new();
        let mut of_json = Vec::new();
        let is_plain = view.record.contains_key(PLAIN);
        // Without outputs, the results have the names of their jobs.
        let jobs = match self.plan.outputs.is_empty() {
            true => results::places(self.plan),
            false => HashMap::new(),
        };
        for (name, value) in &end.result {
            let job = jobs.get(name.as_str()).copied();
            let (text, is_json) = results.output(job, value);
            let name = if is_plain {
                adopt::number(name)
            } else {
                name.as_str()
            };
            result.insert(name, text);
            of_json.extend(is_json.then_some(name));
        }
        let mut fields = vec![
            ("status", end.status.clone()),
            (JSON_OUTPUTS, json!(of_json).to_string()),
        ];
        if let Some(error) = view.record.get("mw_fault").or(end.error.as_ref()) {
            result.insert("error", error.clone());
            fields.push(("error", error.clone()));
            for (name, jobs) in [
                ("compensated", &end.compensated),
                ("not_compensated", &end.not_compensated),
            ] {
                if !jobs.is_empty() {
                    result.insert(name, json!(jobs).to_string());
                }
            }
        }
        fields.push(("result", json!(result).to_string()));
        self.moves.note(&fields);
    }

    /// Ends the step: the flow waits for a change, or for the next poll.
    async fn rest(&mut self, view: &View) -> Result<StepDone, FlowError> {
        let now = self.flows.broker().now().await?;
        let expires = view
            .number("mw_expires")
            .filter(|_| view.state.stop.is_none());
        let first = expires.into_iter().chain(self.next).min();
        let first = first.map(|at| Duration::from_millis(at.saturating_sub(now)));
        let look = first.map_or(LOOK, |at| at.min(LOOK));
        self.calm(view);
        self.moves.rest(view.dirty(), Some(look));
        let moves = std::mem::take(&mut self.moves);
        Ok(self.flows.commit(self.lease, &moves).await?)
    }

    /// Adds the jobs of an ended flow to the retention.
    async fn close(&mut self, view: &View) -> Result<StepDone, FlowError> {
        for keys in view.keys(self.flows).chunks(MAX_MOVES - 1) {
            self.moves.keep(keys);
            let done = self.flush().await?;
            if done != StepDone::Done {
                return Ok(done);
            }
        }
        self.moves.rest(view.dirty(), None);
        let moves = std::mem::take(&mut self.moves);
        Ok(self.flows.commit(self.lease, &moves).await?)
    }
}

/// Deletes a flow with its jobs.
pub(super) async fn delete(
    flows: &Flows,
    id: FlowId,
    record: &FlowFields,
) -> Result<(), FlowError> {
    let caller = record
        .get("caller_id")
        .and_then(|text| text.parse::<ActorId>().ok());
    let broker = flows.broker();
    if let Some(caller) = caller {
        let names = flows.names(id).await?;
        let ids = names.values().filter_map(|id| {
            Some(JobKey {
                caller,
                id: id.parse().ok()?,
            })
        });
        let ids: Vec<_> = ids.map(|key| flows.job_id(key)).collect();
        for ids in ids.chunks(MAX_MOVES) {
            for job in broker.inspect_many(ids).await?.into_iter().flatten() {
                flows.delete_job(&job).await?;
            }
        }
    }
    Ok(flows.forget(id).await?)
}
