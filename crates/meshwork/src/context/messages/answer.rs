//! Answers: the results of the jobs of a message, as a message to its sender.

use std::collections::HashSet;

use meshwork_broker::MAX_ITEMS;
use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{
    ContextJob, LogLevel, Message, MessageStatus, MessageType, NodeId, Overdue, field, limits,
};
use meshwork_model::keys::context::MessageKey;
use meshwork_model::mesh::MAX_RESULT;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use meshwork_model::time;

use crate::context::audit::{COORDINATOR, Change};
use crate::context::messages::damage::Damage;
use crate::context::messages::done::Done;
use crate::context::messages::foreign::cancelled;
use crate::context::messages::message::{MessageView, logs_with, overdue};
use crate::context::messages::origin::Origin;
use crate::context::{ContextError, ContextHandle, MOST, Notice, Transport};

/// Shortest and longest time between two checks of the jobs of a message, in milliseconds. The script that ends a job
/// marks the message as due. Checks find the ends of plain runners' jobs.
const LOOK_AGAIN_MS: [u64; 2] = [200, 5_000];
/// Bytes of a result between nodes around its jobs.
const RESULT_AROUND: usize = 64;
/// Share of a message's age in the time until its next check: 1/10.
const AGE_SHARE: u64 = 10;

/// A message that waits for the ends of its jobs.
struct Open<'a> {
    element: &'a [u8],
    key: MessageKey,
    /// Keys of its jobs; `None` if the message needs more than a check of their status.
    jobs: Option<Vec<String>>,
    /// Time until the next check, in milliseconds.
    pause: u64,
}

fn is_over(status: &[u8]) -> bool {
    let over = [Status::Finished, Status::Error];
    over.iter().any(|it| it.as_str().as_bytes() == status)
}

/// Returns true if a job may still end. One that is gone will not: it counts as failed.
fn waits((status, id): &(Vec<u8>, Vec<u8>)) -> bool {
    !is_over(status) && (!status.is_empty() || !id.is_empty())
}

/// Returns the time at which the jobs of a message may not begin any more, in milliseconds.
fn last_start_ms((created_at, timeout): &(Vec<u8>, Vec<u8>)) -> Option<u64> {
    let created_at = number(created_at).filter(|at| *at > 0)?;
    let timeout = number(timeout).unwrap_or(limits::DEFAULT_TIMEOUT_RESULT.into());
    let end = created_at.saturating_add(timeout);
    // A timeout is over in the second after its last one.
    Some(end.saturating_add(1).saturating_mul(1000))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl ContextHandle {
    /// Answers the messages all of whose jobs have ended.
    pub(crate) async fn answer(
        &self,
        node: NodeId,
        transport: &dyn Transport,
    ) -> Result<Done, ContextError> {
        let open = self.keys().open();
        let elements = self
            .store()
            .elements(self.database(), &open, Read::Due(MOST))
            .await?;
        let mut done = Done {
            more: elements.len() == MOST,
            ..Done::default()
        };
        let heads = self.heads(&open, &elements).await?;
        let now = self.store().now().await?;
        // Before the jobs are read: one that ends later marks its message as due again.
        let next = heads.iter().fold(Commit::default(), |commit, head| {
            commit.mark(&open, now + head.pause, head.element)
        });
        if !heads.is_empty() {
            let _ = self.commit(&next).await?;
        }
        for head in self.without_open_jobs(heads).await? {
            let answered = self.answer_open(node, transport, &open, &head).await;
            done.note(self.id(), head.element, answered.map(usize::from))?;
        }
        Ok(done)
    }

    /// Reads what decides about the next check of open messages. Elements that name no message are removed.
    async fn heads<'a>(
        &self,
        open: &str,
        elements: &'a [Vec<u8>],
    ) -> Result<Vec<Open<'a>>, ContextError> {
        let (mut named, mut others) = (Vec::new(), Commit::default());
        for element in elements {
            match self.keys().parse_message(element) {
                Ok(key) => named.push((element, key)),
                Err(_) => others = others.unmark(open, element),
            }
        }
        if named.len() < elements.len() {
            let _ = self.commit(&others).await?;
        }
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let records = named.iter().map(|(_, key)| self.keys().message(*key));
        let records: Vec<_> = records.collect();
        let pairs = async |fields| self.store().pairs(self.database(), &records, fields).await;
        let states = pairs((field::STATUS, field::MATERIALISED)).await?;
        let times = pairs((field::UPDATED_AT, field::ACKED_AT)).await?;
        let ends = pairs((field::CREATED_AT, field::TIMEOUT_RESULT)).await?;
        let now = self.store().now().await?;
        let read = named.into_iter().zip(states).zip(times).zip(ends);
        let heads = read.map(
            |((((element, key), (status, jobs)), (since, acknowledged)), end)| {
                let left = last_start_ms(&end).map(|end| end.saturating_sub(now));
                let is_plain = status == MessageStatus::Acknowledged.as_str().as_bytes();
                // After the last start, jobs that have not begun are cancelled.
                let is_plain = is_plain && !acknowledged.is_empty() && left != Some(0);
                let jobs = serde_json::from_slice::<Vec<String>>(&jobs).ok();
                let jobs = jobs.filter(|jobs| is_plain && jobs.len() <= limits::MAX_MESSAGE_JOBS);
                let since = number(&since).unwrap_or_default().saturating_mul(1000);
                let [least, most] = LOOK_AGAIN_MS;
                let pause = (now.saturating_sub(since) / AGE_SHARE).clamp(least, most);
                let pause = left
                    .filter(|left| *left > 0)
                    .map_or(pause, |left| pause.min(left));
                Open {
                    element,
                    key,
                    jobs,
                    pause,
                }
            },
        );
        Ok(heads.collect())
    }

    /// Returns the messages all of whose jobs have ended, and those that need more than this check.
    async fn without_open_jobs<'a>(
        &self,
        heads: Vec<Open<'a>>,
    ) -> Result<Vec<Open<'a>>, ContextError> {
        let jobs = heads.iter().filter_map(|head| head.jobs.as_ref()).flatten();
        let jobs: Vec<_> = jobs
            .filter(|job| self.keys().parse_job(job.as_bytes()).is_ok())
            .cloned()
            .collect();
        let mut waiting = HashSet::new();
        for page in jobs.chunks(MAX_ITEMS) {
            let fields = (field::STATUS, field::ID);
            let found = self.store().pairs(self.database(), page, fields).await?;
            let open = page.iter().zip(found).filter(|(_, found)| waits(found));
            waiting.extend(open.map(|(job, _)| job.clone()));
        }
        let ended = |head: &Open<'_>| {
            let jobs = head.jobs.as_ref();
            jobs.is_none_or(|jobs| !jobs.iter().any(|job| waiting.contains(job)))
        };
        Ok(heads.into_iter().filter(ended).collect())
    }

    async fn answer_open(
        &self,
        node: NodeId,
        transport: &dyn Transport,
        open: &str,
        head: &Open<'_>,
    ) -> Result<bool, ContextError> {
        let forget = Commit::default().unmark(open, head.element);
        let view = match self.message_of(head.key).await {
            Ok(view) => view,
            Err(error) if error.is_permanent() => {
                let damage = Damage::of(head.element, &error);
                self.end_damaged(damage, transport, forget).await?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let Some(view) = view.filter(|view| !view.message.status.is_final()) else {
            let _ = self.commit(&forget).await?;
            return Ok(false);
        };
        if view.message.status == MessageStatus::Dispatched {
            // The message was moved here because it could not be taken up: retry that.
            let commit = forget.push(&self.keys().msg_in_jobs(), head.element);
            let _ = self.commit(&commit).await?;
            return Ok(true);
        }
        let acknowledged = match (view.acked_at, &view.origin) {
            (None, Some(origin)) => self.acknowledge(&view, node, transport, origin).await,
            _ => Ok(()),
        };
        let answered = self
            .answer_one((node, transport), &view, open, head.element)
            .await?;
        if let (true, Some(origin)) = (answered, &view.origin) {
            // A sender on this node gets the result as a message.
            let from = self.site(node);
            transport.notify(from, origin, &Notice::Answered).await?;
        }
        // Last, so that a sender that cannot be notified does not delay the result.
        acknowledged?;
        Ok(answered)
    }

    /// Cancels the jobs of a message that have not begun within its `timeout_result`. Workers of Meshwork do not begin
    /// them after that, but plain runners would.
    async fn cancel_late(
        &self,
        view: &MessageView,
        names: &[String],
        found: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<(), ContextError> {
        let (message, now) = (&view.message, self.node().now().await?);
        if overdue(message, now, true) != Some(Overdue::Result) {
            return Ok(());
        }
        let waiting = [Status::Dispatched, Status::WaitingForPrerequisites];
        let waits = |status: &[u8]| waiting.iter().any(|it| it.as_str().as_bytes() == status);
        let late = names.iter().zip(found);
        let late = late.filter(|(_, (status, _))| waits(status));
        let late: Vec<_> = late.map(|(key, _)| JobId::foreign(key.clone())).collect();
        if late.is_empty() {
            return Ok(());
        }
        let broker = self.node().broker().of_context(self.keys().clone()).await?;
        let why = format!(
            "timeout: not begun within the timeout_result of its message, {}",
            time::duration(u64::from(message.timeout_result) * 1000)
        );
        for job in broker.inspect_many(&late).await?.into_iter().flatten() {
            if job.status() != Some(Status::Started) {
                broker.cancel(&job, &why, false).await?;
            }
        }
        Ok(())
    }

    async fn answer_one(
        &self,
        (node, transport): (NodeId, &dyn Transport),
        view: &MessageView,
        open: &str,
        element: &[u8],
    ) -> Result<bool, ContextError> {
        let jobs = self.jobs_of_message(view);
        let names: Vec<_> = jobs.iter().flatten().cloned().collect();
        let fields = (field::STATUS, field::ID);
        let found = self.store().pairs(self.database(), &names, fields).await?;
        if found.iter().any(waits) {
            self.cancel_late(view, &names, &found).await?;
            return Ok(false);
        }
        let is_foreign = |origin: &Origin| origin.node != node;
        let most = match view.origin.as_ref().is_some_and(is_foreign) {
            true => MAX_RESULT - RESULT_AROUND,
            false => limits::MAX_FIELD,
        };
        let jobs = self.results(view, jobs, most).await?;
        let (now, message) = (self.node().now().await?, &view.message);
        let failed = jobs.iter().any(|job| job.status != Status::Finished);
        let status = if failed {
            MessageStatus::Error
        } else {
            MessageStatus::Processed
        };
        let logs = logs_with(message, now, LogLevel::Info, "all jobs have ended");
        let commit = self.changed(view, status, now, &logs).unmark(open, element);
        if let (true, Some(origin), true) = (failed, &view.origin, view.cancel_at.is_some()) {
            // Before the message ends: after a crash in between, it is notified again. Another node asks.
            if origin.node == node {
                let (from, notice) = (self.site(node), Notice::Failed(cancelled()));
                transport.notify(from, origin, &notice).await?;
            }
            let commit = self.ended_cancelled(view, now).unmark(open, element);
            return Ok(self.commit(&commit).await?.is_done());
        }
        let commit = match &view.origin {
            Some(origin) => {
                self.with_answer(commit, message, jobs, status, origin, node)
                    .await?
            }
            None => commit,
        };
        let object = self.keys().message(message.key());
        let change = Change {
            who: COORDINATOR,
            what: "answer",
            object: &object,
            after: status.as_str(),
            ..Change::default()
        };
        Ok(self
            .commit(&change.noted(commit, &self.keys().audit()))
            .await?
            .is_done())
    }

    /// Adds to a commit the message that brings a result to the sender.
    async fn with_answer(
        &self,
        commit: Commit,
        sent: &Message,
        jobs: Vec<ContextJob>,
        status: MessageStatus,
        origin: &Origin,
        node: NodeId,
    ) -> Result<Commit, ContextError> {
        let key = self.next_message(sent.caller_id).await?;
        let now = self.node().now().await?;
        let answer = Message {
            job: jobs,
            status,
            target_context: Some(origin.context),
            target_node: (origin.node != node).then_some(origin.node),
            ..Message::new(self.id(), key, MessageType::Job, String::new(), now)
        };
        let element = self.keys().message(key);
        let nonce = meshwork_model::envelope::Nonce(rand::random()).to_string();
        let re = origin.message.numbers();
        let commit = self
            .kept(commit, &element, now)
            .absent(&element)
            .set(&element, answer.to_fields())
            .set(&element, [(field::NONCE, nonce.as_str()), (field::RE, &re)]);
        Ok(match origin.node == node {
            true => commit.push(&self.keys().msg_out(), element.as_bytes()),
            // The other node gets the result as an answer, and asks for a lost one.
            false => {
                let record = self.keys().message(sent.key());
                commit.set(&record, [(field::RESULT_MESSAGE, element.as_str())])
            }
        })
    }
}
