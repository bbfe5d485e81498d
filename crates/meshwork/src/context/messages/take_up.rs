//! Takes up received job messages: stores and enqueues their jobs.

use std::collections::HashMap;

use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{
    ContextJob, LogLevel, Message, MessageStatus, MessageType, NodeId, Reason, field,
};
use meshwork_model::job::field as job_field;
use meshwork_model::keys::context::{ActorId, Counter, JobKey, RunnerId};
use meshwork_model::route::Route;
use meshwork_model::state::Status;

use crate::context::audit::{COORDINATOR, Change};
use crate::context::messages::damage::Damage;
use crate::context::messages::done::Done;
use crate::context::messages::message::{MessageView, logs_with, overdue, overdue_text};
use crate::context::messages::origin::Origin;
use crate::context::messages::topic::to_runner;
use crate::context::{ContextError, ContextHandle, MOST, Notice, Transport};

/// Time until the first check of the jobs of a message, in milliseconds.
const FIRST_LOOK_MS: u64 = 200;
/// Time until a message that could not be taken up is tried again, in milliseconds.
const RETRY_MS: u64 = 10_000;

impl ContextHandle {
    /// Takes up the received job messages.
    pub(crate) async fn take_up(
        &self,
        node: NodeId,
        transport: &dyn Transport,
    ) -> Result<Done, ContextError> {
        let list = self.keys().msg_in_jobs();
        let mut elements = self
            .store()
            .elements(self.database(), &list, Read::Tail(MOST))
            .await?;
        elements.reverse();
        let mut done = Done::default();
        for element in &elements {
            let taken = match self.take_up_one(node, transport, &list, element).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => self.put_off(&list, element).await.and(Err(error)),
                taken => taken.map(|()| 1),
            };
            done.note(self.id(), element, taken)?;
        }
        Ok(done)
    }

    /// Moves an element that failed from the list to the open messages, so that it does not delay others.
    /// [`Self::answer`] returns it to the list after a pause.
    async fn put_off(&self, list: &str, element: &[u8]) -> Result<(), ContextError> {
        let next = self.store().now().await? + RETRY_MS;
        let commit = Commit::default().listed(list, element).drop(list, element);
        let commit = commit.mark(&self.keys().open(), next, element);
        self.commit(&commit).await.map(drop)
    }

    async fn take_up_one(
        &self,
        node: NodeId,
        transport: &dyn Transport,
        list: &str,
        element: &[u8],
    ) -> Result<(), ContextError> {
        let view = match self.keys().parse_message(element) {
            Err(error) => return self.drop_from(list, element, &error.to_string()).await,
            Ok(key) => match self.message_of(key).await {
                Ok(Some(view)) => view,
                Ok(None) => {
                    return self
                        .drop_from(list, element, "there is no such message")
                        .await;
                }
                Err(error) if error.is_permanent() => {
                    let commit = Commit::default().listed(list, element).drop(list, element);
                    let damage = Damage::of(element, &error);
                    return self.end_damaged(damage, transport, commit).await;
                }
                Err(error) => return Err(error),
            },
        };
        let message = &view.message;
        let result = message.is_result() && view.re.is_some();
        if message.message_type != MessageType::Job || result {
            let inbox = self.keys().msg_in();
            let commit = Commit::default()
                .listed(list, element)
                .drop(list, element)
                .push(&inbox, element);
            let _ = self.commit(&commit).await?;
            return Ok(());
        }
        if message.status != MessageStatus::Dispatched {
            return self
                .drop_from(list, element, "it was taken up before")
                .await;
        }
        if let Some(reason) = self.refused(node, &view).await? {
            return self
                .refuse(&view, node, transport, (list, element), &reason)
                .await;
        }
        let types = message
            .job
            .iter()
            .filter_map(|job| job.script_type.as_ref());
        let runner = match self.runner_of(message.topic.as_deref(), types).await? {
            Ok(runner) => runner,
            Err(reason) => {
                return self
                    .refuse(&view, node, transport, (list, element), &reason)
                    .await;
            }
        };
        match self.materialise(node, &view, runner, (list, element)).await {
            Err(error) if error.is_permanent() => {
                tracing::warn!(context = %self.id(), %error, "message refused: damaged key");
                return self
                    .refuse(&view, node, transport, (list, element), &damaged(&error))
                    .await;
            }
            done => done?,
        }
        if let Some(origin) = &view.origin {
            self.acknowledge(&view, node, transport, origin).await?;
        }
        Ok(())
    }

    /// Returns the reason to refuse a message: its signature, its timeout, or its jobs.
    async fn refused(
        &self,
        node: NodeId,
        view: &MessageView,
    ) -> Result<Option<Reason>, ContextError> {
        let message = &view.message;
        // A message from a transport was checked when it was stored. Any other comes from a client with write access to
        // this database, which could have stored the jobs itself.
        let unsealed = match view.origin {
            Some(_) => None,
            None => {
                let unsealed = self.unsealed(node, message, view.answered(), None);
                match unsealed.await {
                    Err(error) if error.is_permanent() => Some(damaged(&error)),
                    unsealed => unsealed?,
                }
            }
        };
        // The message may have waited for a long time.
        let late = overdue(message, self.node().now().await?, true);
        let late = late.map(|late| Reason::new(Reason::LATE, overdue_text(message, late)));
        let invalid = || Some(Reason::new(Reason::INVALID, self.rejection(message)?));
        Ok(unsealed.or(late).or_else(invalid))
    }

    /// Returns the reason why the jobs of a message cannot run, if there is one.
    fn rejection(&self, message: &Message) -> Option<String> {
        if message.job.is_empty() {
            return Some("it asks for no job".to_owned());
        }
        let other = message
            .job
            .iter()
            .find(|job| job.caller_id != message.caller_id);
        if let Some(job) = other {
            return Some(format!(
                "{} is of another caller than the message",
                job.key()
            ));
        }
        let typeless = message.job.iter().find(|job| job.script_type.is_none());
        if let Some(job) = typeless {
            return Some(format!("{} has no script_type", job.key()));
        }
        let circle = message.circle(self.keys())?;
        Some(format!(
            "{circle} waits for itself, through its prerequisites"
        ))
    }

    /// Removes an unusable element from a list, and records the reason in the audit trail.
    pub(crate) async fn drop_from(
        &self,
        list: &str,
        element: &[u8],
        why: &str,
    ) -> Result<(), ContextError> {
        let object: String = String::from_utf8_lossy(element).chars().take(80).collect();
        let change = Change {
            who: COORDINATOR,
            what: "drop",
            object: &object,
            before: list,
            after: why,
        };
        let commit = Commit::default().listed(list, element).drop(list, element);
        let _ = self
            .commit(&change.noted(commit, &self.keys().audit()))
            .await?;
        Ok(())
    }

    /// Ends a refused message, and notifies its sender.
    async fn refuse(
        &self,
        view: &MessageView,
        node: NodeId,
        transport: &dyn Transport,
        (list, element): (&str, &[u8]),
        why: &Reason,
    ) -> Result<(), ContextError> {
        // Before the message ends: after a crash in between, it is refused again.
        if let Some(origin) = &view.origin {
            let (from, notice) = (self.site(node), Notice::Failed(why.clone()));
            transport.notify(from, origin, &notice).await?;
        }
        let now = self.node().now().await?;
        let logs = logs_with(&view.message, now, LogLevel::Error, why.text.as_str());
        let object = self.keys().message(view.message.key());
        let change = Change {
            who: COORDINATOR,
            what: "refuse message",
            object: &object,
            after: &why.text,
            ..Change::default()
        };
        let commit = self
            .changed(view, MessageStatus::Error, now, &logs)
            .set(&object, [(field::REASON, why.code.as_str())])
            .drop(list, element);
        let _ = self
            .commit(&change.noted(commit, &self.keys().audit()))
            .await?;
        Ok(())
    }

    /// Stores and enqueues the jobs of a message and changes its status, in one step. Each job keeps its key if that is
    /// free.
    async fn materialise(
        &self,
        node: NodeId,
        view: &MessageView,
        runner: Option<RunnerId>,
        (list, element): (&str, &[u8]),
    ) -> Result<(), ContextError> {
        let message = &view.message;
        let keys = self.numbered(message).await?;
        let (record, now) = (self.keys().message(message.key()), self.node().now().await?);
        let elements: Vec<_> = keys.iter().map(|key| self.keys().job(*key)).collect();
        let become_ids: HashMap<u32, u32> = message
            .job
            .iter()
            .zip(&keys)
            .map(|(job, key)| (job.id, key.id))
            .collect();
        let logs = logs_with(message, now, LogLevel::Info, "taken up");
        let names = serde_json::to_string(&elements).unwrap_or_else(|_| "[]".to_owned());
        let open_at = u64::from(now) * 1000 + FIRST_LOOK_MS;
        let created_at = match message.created_at {
            0 => now,
            created_at => created_at,
        };
        let begin = start_by(created_at, message.timeout_result);
        let from = view.origin.as_ref().map(|origin| origin.node);
        // Workers run jobs of other nodes in the strictest sandbox.
        let from = from.filter(|from| *from != node).map(|it| it.to_string());
        let from_node = from.as_deref().map(|from| (job_field::FROM_NODE, from));
        let mut commit = self
            .changed(view, MessageStatus::Acknowledged, now, &logs)
            .listed(list, element)
            .set(
                &record,
                [
                    (field::MATERIALISED, names.as_str()),
                    (field::CREATED_AT, &created_at.to_string()),
                ],
            )
            .drop(list, element)
            .mark(&self.keys().open(), open_at, element);
        for ((job, key), name) in message.job.iter().zip(&keys).zip(&elements) {
            let dependends = job.dependends.iter();
            let dependends = dependends.map(|id| *become_ids.get(id).unwrap_or(id));
            let job = ContextJob {
                id: key.id,
                context_id: self.id(),
                dependends: dependends.collect(),
                created_at: now,
                updated_at: now,
                ..job.clone()
            };
            let of_message = (field::OF_MESSAGE, record.as_str());
            let more = [of_message, (job_field::START_BY, begin.as_str())];
            let more = more.into_iter().chain(from_node);
            commit = self.with_job(commit, (job, runner), name, more);
        }
        let change = Change {
            who: COORDINATOR,
            what: "take up",
            object: &record,
            after: &names,
            ..Change::default()
        };
        // Another coordinator was first, or another client took a number: the element is handled again if it is still
        // listed.
        let _ = self
            .commit(&change.noted(commit, &self.keys().audit()))
            .await?;
        Ok(())
    }

    /// Adds a job to a commit: its record under `name` with these fields, and its entry in the queue.
    fn with_job<'a>(
        &self,
        commit: Commit,
        (job, runner): (ContextJob, Option<RunnerId>),
        name: &str,
        more: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Commit {
        let waits = !job.dependends.is_empty() || !job.prerequisites.is_empty();
        let status = match waits {
            true => Status::WaitingForPrerequisites,
            false => Status::Dispatched,
        };
        let job = ContextJob { status, ..job };
        let Some(script_type) = job.script_type.clone() else {
            return commit;
        };
        let more = more.map(|(field, value)| (field.to_owned(), value.to_owned()));
        let fields = job.to_fields().into_iter().chain(more);
        let route = to_runner(Route::to(script_type), runner);
        let queue = self.keys().queue(&route);
        // A retry of the job returns to this queue.
        let instance = route.instance.map(|it| it.as_str().to_owned());
        let instance = instance.map(|it| (job_field::INSTANCE.to_owned(), it));
        let fields = fields.chain(instance);
        // One command for all fields: a message with the greatest number of jobs must fit into one commit.
        commit
            .absent(name)
            .set(name, fields)
            .push(&queue, name.as_bytes())
    }

    /// Returns the keys for a message's jobs: their own where these are free, else the next numbers.
    async fn numbered(&self, message: &Message) -> Result<Vec<JobKey>, ContextError> {
        let own: Vec<_> = message.job.iter().map(ContextJob::key).collect();
        let names: Vec<_> = own.iter().map(|key| self.keys().job(*key)).collect();
        let found = self.store().hashes(self.database(), &names).await?;
        let mut keys = Vec::with_capacity(own.len());
        for (key, fields) in own.into_iter().zip(found) {
            keys.push(match fields.is_empty() && !keys.contains(&key) {
                true => key,
                false => self.next_job(key.caller).await?,
            });
        }
        Ok(keys)
    }

    async fn next_job(&self, caller: ActorId) -> Result<JobKey, ContextError> {
        let (counter, prefix) = (
            self.keys().next_id(Counter::Job),
            self.keys().job_prefix(caller),
        );
        let drawn = self
            .store()
            .draw(self.database(), &counter, &prefix)
            .await?;
        let id = drawn.ok_or(ContextError::NoNumber("job"))?;
        Ok(JobKey { caller, id })
    }

    /// Acknowledges a message to its sender, and records the acknowledgement.
    pub(crate) async fn acknowledge(
        &self,
        view: &MessageView,
        node: NodeId,
        transport: &dyn Transport,
        origin: &Origin,
    ) -> Result<(), ContextError> {
        let from = self.site(node);
        transport
            .notify(from, origin, &Notice::Acknowledged)
            .await?;
        let record = self.keys().message(view.message.key());
        let now = self.node().now().await?.to_string();
        let commit = Commit::default().set(&record, [(field::ACKED_AT, now.as_str())]);
        let _ = self.commit(&commit).await?;
        Ok(())
    }
}

fn damaged(error: &ContextError) -> Reason {
    Reason::new(Reason::DAMAGED, error.to_string())
}

/// Returns the field for a job that has to start within `timeout` seconds from `created_at`.
fn start_by(created_at: u32, timeout: u32) -> String {
    let (created_at, timeout) = (u64::from(created_at), u64::from(timeout));
    format!("{} {}", (created_at + timeout) * 1000, timeout * 1000)
}
