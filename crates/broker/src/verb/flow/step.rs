//! claim, commit, stop, retry, answer: the verbs of a flow's steps.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::context::{ActorId, FlowId};
use meshwork_model::name::JobId;

use super::submit::parts;
use super::{FlowJob, Flows, MAX_MOVES};
use crate::script::Verb;
use crate::verb::{at_most, word};
use crate::{BlockingConn, Error};

/// A flow under a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowLease {
    /// Number of the flow.
    pub id: FlowId,
    /// Token that proves the claim.
    pub token: String,
    /// Duration of the lease, from each commit on.
    pub lease: Duration,
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowClaim {
    /// A flow is due.
    Claimed(FlowLease),
    /// No flow is due; the next one is after this time, if there is one.
    Idle(Option<Duration>),
}

/// Outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum StepDone {
    /// All moves were made.
    Done,
    /// Another worker has the flow: nothing has changed.
    Stale,
    /// The flow has changed since the step read it, or moves are left: read it again.
    Again,
    /// No number is left for a new job.
    NoNumbers,
}

/// Outcome of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The flow stops.
    Stopping,
    /// The flow had ended before.
    Ended,
    /// The flow does not exist.
    Missing,
}

/// Outcome of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// The next step runs the jobs again.
    Retrying,
    /// The flow has not ended.
    Unfinished,
    /// The flow does not exist.
    Missing,
}

/// An approval of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Approval<'a> {
    /// Number of the flow.
    pub flow: FlowId,
    /// Id of the approval's job.
    pub job: &'a JobId,
    /// Place in the plan.
    pub node: &'a str,
    /// Generation of the approval.
    pub generation: u32,
    /// Name in the plan.
    pub name: &'a str,
}

/// Outcome of an answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The answer counts.
    Answered,
    /// The approval has ended; its answer, as `yes 12`, if there was one.
    Ended(String),
    /// The timeout of the approval is over.
    Late,
    /// The approval is not open yet.
    Waiting,
    /// The flow has no such approval.
    Missing,
}

/// Changes of a step, in order; at most [`MAX_MOVES`].
#[derive(Debug, Default)]
pub struct Moves {
    moves: Vec<(&'static str, Vec<Vec<u8>>)>,
}

impl Moves {
    /// Returns the number of moves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Returns true if there are no moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// Returns the bytes of all moves.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = self.moves.iter().flat_map(|(_, parts)| parts);
        parts.map(Vec::len).sum()
    }

    fn push(&mut self, word: &'static str, parts: Vec<Vec<u8>>) {
        self.moves.push((word, parts));
    }

    /// Releases a stored job, with these fields in its record. With an empty queue it is started, and no worker claims
    /// it.
    pub fn release(
        &mut self,
        node: &str,
        generation: u32,
        key: &str,
        queue: &str,
        fields: Vec<(&'static str, Vec<u8>)>,
    ) {
        let generation = generation.to_string();
        let mut parts: Vec<Vec<u8>> = [node, &generation, key, queue]
            .map(|text| text.as_bytes().to_vec())
            .into();
        for (name, value) in fields {
            parts.push(name.into());
            parts.push(value);
        }
        self.push("release", parts);
    }

    /// Stores and releases an item of a `foreach`.
    pub fn add(&mut self, flows: &Flows, caller: ActorId, job: &FlowJob) {
        let queue = job.job.route.queue(flows.broker.keys());
        let mut all = vec![flows.job_prefix(caller).into_bytes(), queue.into_bytes()];
        all.extend(parts(&flows.broker, job));
        self.push("add", all);
    }

    /// Expands a `foreach` to this number of items.
    pub fn expand(&mut self, node: &str, generation: u32, items: usize, key: &str) {
        let (generation, items) = (generation.to_string(), items.to_string());
        let parts = [node, &generation, &items, key];
        self.push("expand", parts.map(|text| text.as_bytes().to_vec()).into());
    }

    /// Marks a `foreach` whose items are all released: only their last end has an effect. `seen` is the state that the
    /// step has read, `ends` has the letters of the ends without an effect.
    pub fn calm(&mut self, node: &str, seen: &str, ends: &str) {
        self.push("calm", vec![node.into(), seen.into(), ends.into()]);
    }

    /// Ends a place without a run. `seen` is the state that the step has read, `how` a letter: `f`, `e`, `c` or `s`;
    /// `text` is the result or the error.
    pub fn finalize(
        &mut self,
        node: &str,
        seen: &str,
        (how, generation): (&str, u32),
        (key, status, text): (&str, &str, &[u8]),
    ) {
        let generation = generation.to_string();
        let parts = [node, seen, how, &generation, key, status];
        let mut parts: Vec<_> = parts.map(|text| text.as_bytes().to_vec()).into();
        parts.push(text.to_vec());
        self.push("finalize", parts);
    }

    /// Ends a `foreach` of which items failed, as [`Self::finalize`] does: with the results of its items as a JSON list, and
    /// their errors by index as a JSON object.
    pub fn finalize_items(
        &mut self,
        node: &str,
        seen: &str,
        (how, generation): (&str, u32),
        (key, text): (&str, &[u8]),
        (results, errors): (String, String),
    ) {
        let generation = generation.to_string();
        let parts = [node, seen, how, &generation, key, "error"];
        let mut parts: Vec<_> = parts.map(|text| text.as_bytes().to_vec()).into();
        parts.extend([text.to_vec(), results.into_bytes(), errors.into_bytes()]);
        self.push("finalize", parts);
    }

    /// Resets a place for a retry. `seen` is the state that the step has read, `then` its new state (empty: none).
    /// `key` and `status` are those of its job, if one is stored. `open` is the number of items that have not ended,
    /// for an expanded `foreach`.
    pub fn renew(
        &mut self,
        node: &str,
        (seen, then): (&str, &str),
        generation: u32,
        (key, status): (&str, &str),
        open: Option<usize>,
    ) {
        let generation = generation.to_string();
        let open = open.map(|open| open.to_string()).unwrap_or_default();
        let parts = [node, seen, then, &generation, key, status, &open];
        self.push("renew", parts.map(|text| text.as_bytes().to_vec()).into());
    }

    /// Runs a job again after a pause in milliseconds: a plain runner failed it with this error.
    pub fn rerun(
        &mut self,
        (node, generation): (&str, u32),
        (key, queue): (&str, &str),
        pause_ms: u64,
        error: &str,
    ) {
        let (generation, pause) = (generation.to_string(), pause_ms.to_string());
        let parts = [node, &generation, key, queue, &pause, error];
        self.push("rerun", parts.map(|text| text.as_bytes().to_vec()).into());
    }

    /// Removes an item whose job was deleted.
    pub fn forget(&mut self, node: &str, name: &str) {
        self.push("forget", vec![node.into(), name.into()]);
    }

    /// Completes a retry: the numbers of the flow's jobs as JSON, and its timeout in milliseconds.
    pub fn renewed(&mut self, jobs: &str, timeout_ms: Option<u64>) {
        let timeout = timeout_ms.map(|ms| ms.to_string()).unwrap_or_default();
        self.push("renewed", vec![jobs.into(), timeout.into()]);
    }

    /// Keeps an approval open although its record has ended without an answer.
    pub fn reopen(&mut self, node: &str, seen: &str, key: &str) {
        self.push("reopen", vec![node.into(), seen.into(), key.into()]);
    }

    /// Links a job of a plain client to its flow: its place, name and number; its key and queue (empty: unknown); its
    /// environment as it was read, and the new one (empty: unchanged). A missing job counts if `is_missing`.
    /// A job waits for the others of the flow without a limit, or for its timeout if `is_limited`.
    pub fn join(
        &mut self,
        (node, name, id): (&str, &str, u32),
        (key, queue): (&str, &str),
        (before, env): (&[u8], &str),
        (is_missing, is_limited): (bool, bool),
    ) {
        let id = id.to_string();
        let mut parts = [node, name, &id, key, queue]
            .map(|text| text.as_bytes().to_vec())
            .to_vec();
        parts.push(before.to_vec());
        parts.push(env.into());
        parts
            .extend([is_missing, is_limited].map(|it| if it { b"1".to_vec() } else { Vec::new() }));
        self.push("join", parts);
    }

    /// Stores the plan of a plain client's flow, after all its jobs have been linked, and lists the flow.
    pub fn plan(&mut self, plan: &str) {
        self.push("plan", vec![plan.into()]);
        self.list();
    }

    /// Lists the flow of a plain client.
    pub fn list(&mut self) {
        self.push("list", Vec::new());
    }

    /// Exempts these jobs from retention, at most [`MAX_MOVES`].
    pub fn hold(&mut self, keys: &[String]) {
        self.push("hold", keys.iter().map(|key| key.clone().into()).collect());
    }

    /// Sets fields of the flow's record.
    pub fn note(&mut self, fields: &[(&str, String)]) {
        let fields = fields.iter();
        let parts = fields.flat_map(|(name, value)| [name.as_bytes().into(), value.clone().into()]);
        self.push("note", parts.collect());
    }

    /// Adds these jobs to the retention, at most [`MAX_MOVES`].
    pub fn keep(&mut self, keys: &[String]) {
        self.push("keep", keys.iter().map(|key| key.clone().into()).collect());
    }

    /// Ends the step, if the flow has not changed since `mw_dirty` had this value. Without a time, only a change wakes
    /// the next step.
    pub fn rest(&mut self, dirty: &str, look_in: Option<Duration>) {
        let look_in = look_in.map(|after| after.as_millis().to_string());
        let parts = vec![dirty.into(), look_in.unwrap_or_default().into()];
        self.push("rest", parts);
    }
}

impl Flows {
    /// Claims the flow that has been due for the longest time.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn claim(&self, token: &str, lease: Duration) -> Result<FlowClaim, Error> {
        let call = self.broker.scripts.call(Verb::FlowClaim);
        let call = call.arg(self.broker.clock.argument());
        let call = call.arg(lease.as_millis() as u64).arg(token);
        let mut answer = call.answer(&self.broker.conn).await?;
        let id: String = answer.next("id")?;
        let next = answer.millis("next")?;
        Ok(match id.parse() {
            Ok(id) => FlowClaim::Claimed(FlowLease {
                id,
                token: token.to_owned(),
                lease,
            }),
            Err(_) => FlowClaim::Idle(next),
        })
    }

    /// Commits the moves of a step in one call.
    ///
    /// # Errors
    /// There are more than [`MAX_MOVES`], or the call to the server fails.
    #[boxed]
    pub async fn commit(&self, lease: &FlowLease, moves: &Moves) -> Result<StepDone, Error> {
        at_most("flow_commit", MAX_MOVES, moves.len())?;
        let mut call = self.broker.scripts.call(Verb::FlowCommit);
        call.push_key(self.keys.flow(lease.id));
        call.push_key(self.part(lease.id, "names"));
        call.push_key(self.part(lease.id, "nodes"));
        call.push_key(self.part(lease.id, "plan"));
        call.push_arg(self.broker.clock.argument());
        call.push_arg(lease.id.0);
        call.push_arg(&lease.token);
        call.push_arg(lease.lease.as_millis() as u64);
        for (word, parts) in &moves.moves {
            call.push_arg(*word);
            call.push_arg(parts.len());
            for part in parts {
                call.push_arg(part.as_slice());
            }
        }
        let known = [
            ("done", StepDone::Done),
            ("stale", StepDone::Stale),
            ("again", StepDone::Again),
            ("none", StepDone::NoNumbers),
        ];
        word("flow_commit", call.run(&self.broker.conn).await?, &known)
    }

    /// Requests that a flow stops. With `keep`, no compensation runs.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn stop(&self, id: FlowId, keep: bool) -> Result<Stopped, Error> {
        let call = self.broker.scripts.call(Verb::FlowStop);
        let call = call
            .key(self.keys.flow(id))
            .arg(self.broker.clock.argument());
        let call = call.arg(&*self.broker.who).arg(id.0).arg(u8::from(keep));
        let known = [
            ("stopping", Stopped::Stopping),
            ("ended", Stopped::Ended),
            ("missing", Stopped::Missing),
        ];
        word("flow_stop", call.run(&self.broker.conn).await?, &known)
    }

    /// Requests a retry of an ended flow for `actor`. `from` has the jobs, in the form that the next step reads.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn retry(&self, id: FlowId, actor: ActorId, from: &str) -> Result<Retried, Error> {
        let mut call = self.broker.scripts.call(Verb::FlowRetry);
        call.push_key(self.keys.flow(id));
        for part in ["names", "nodes", "plan"] {
            call.push_key(self.part(id, part));
        }
        let call = call.arg(self.broker.clock.argument());
        let call = call.arg(&*self.broker.who).arg(id.0);
        let call = call.arg(from).arg(actor.0);
        let known = [
            ("retrying", Retried::Retrying),
            ("unfinished", Retried::Unfinished),
            ("missing", Retried::Missing),
        ];
        word("flow_retry", call.run(&self.broker.conn).await?, &known)
    }

    /// Answers an approval.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn answer(
        &self,
        approval: Approval<'_>,
        actor: ActorId,
        yes: bool,
    ) -> Result<Answered, Error> {
        let flow = approval.flow;
        let call = self.broker.scripts.call(Verb::FlowAnswer);
        let call = call.key(approval.job.as_str());
        let call = call.key(self.part(flow, "nodes")).key(self.keys.flow(flow));
        let call = call.arg(self.broker.clock.argument());
        let call = call.arg(&*self.broker.who).arg(flow.0).arg(actor.0);
        let call = call.arg(if yes { "yes" } else { "no" });
        let call = call.arg(approval.node).arg(approval.generation);
        let call = call.arg(approval.name);
        let mut answer = call.answer(&self.broker.conn).await?;
        let (said, first) = (answer.next::<String>("answer")?, answer.next("first")?);
        Ok(match said.as_str() {
            "answered" => Answered::Answered,
            "ended" => Answered::Ended(first),
            "late" => Answered::Late,
            "waiting" => Answered::Waiting,
            _ => Answered::Missing,
        })
    }

    /// Waits until a flow is due. Returns false if none was in time.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
    pub async fn wait_for_step(
        &self,
        blocking: &BlockingConn,
        wait: Duration,
    ) -> Result<bool, Error> {
        let queue = self.keys.flow_queue();
        blocking.pops("wait_for_step", &queue, wait).await
    }
}
