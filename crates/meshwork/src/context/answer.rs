//! Answers: the results of the jobs of a message, as a message to its sender.

use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{
    ContextJob, LogLevel, Message, MessageStatus, MessageType, NodeId, field,
};
use meshwork_model::keys::context::{Counter, MessageKey};
use meshwork_model::state::Status;

use super::audit::{COORDINATOR, Change};
use super::message::{MessageView, logs_with};
use super::origin::Origin;
use super::take_up::LOOK_AGAIN_MS;
use super::{ContextError, ContextHandle, MOST, Transport};

impl ContextHandle {
    /// Answers the messages all of whose jobs have ended.
    pub(super) async fn answer(
        &self,
        node: NodeId,
        transport: &dyn Transport,
    ) -> Result<usize, ContextError> {
        let open = self.keys().open();
        let elements = self
            .store()
            .elements(self.database(), &open, Read::Due(MOST))
            .await?;
        let mut answered = 0;
        for element in &elements {
            let key = self.keys().parse_message(element).ok();
            let view = match key {
                Some(key) => self.message_of(key).await.or_else(|error| match error {
                    ContextError::Record(_) => Ok(None),
                    error => Err(error),
                })?,
                None => None,
            };
            let Some(view) = view.filter(|view| view.message.status == MessageStatus::Acknowledged)
            else {
                let _ = self
                    .commit(&Commit::default().unmark(&open, element))
                    .await?;
                continue;
            };
            if let (None, Some(origin)) = (view.acked_at, &view.origin) {
                self.acknowledge(&view, transport, origin).await?;
            }
            answered += usize::from(self.answer_one(node, &view, &open, element).await?);
        }
        Ok(answered)
    }

    async fn answer_one(
        &self,
        node: NodeId,
        view: &MessageView,
        open: &str,
        element: &[u8],
    ) -> Result<bool, ContextError> {
        let fields = (field::STATUS, field::ID);
        let found = self
            .store()
            .pairs(self.database(), &view.materialised, fields)
            .await?;
        let over = |status: &[u8]| {
            [Status::Finished, Status::Error]
                .iter()
                .any(|it| it.as_str().as_bytes() == status)
        };
        // A job that is gone will not end: it counts as failed.
        let waits = |(status, id): &(Vec<u8>, Vec<u8>)| {
            !over(status) && (!status.is_empty() || !id.is_empty())
        };
        if found.iter().any(waits) {
            let next = self.store().now().await? + LOOK_AGAIN_MS;
            let _ = self
                .commit(&Commit::default().mark(open, next, element))
                .await?;
            return Ok(false);
        }
        let jobs = self.results(view).await?;
        let (now, message) = (self.node().now().await?, &view.message);
        let failed = jobs.iter().any(|job| job.status != Status::Finished);
        let status = if failed {
            MessageStatus::Error
        } else {
            MessageStatus::Processed
        };
        let logs = logs_with(message, now, LogLevel::Info, "all jobs have ended");
        let commit = self.changed(view, status, now, &logs).unmark(open, element);
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

    /// Results of a message's jobs, with the sender's numbers.
    async fn results(&self, view: &MessageView) -> Result<Vec<ContextJob>, ContextError> {
        let found = self
            .store()
            .hashes(self.database(), &view.materialised)
            .await?;
        let sent = view.message.job.iter().zip(found);
        let result = |(sent, fields): (&ContextJob, meshwork_broker::context::RecordFields)| {
            let gone = fields.is_empty();
            let ran = ContextJob::from_fields(self.id(), sent.key(), fields);
            let (status, result, error) = match ran {
                Ok(ran) if !gone => (ran.status, ran.result, ran.error),
                Ok(_) => (
                    Status::Error,
                    sent.result.clone(),
                    Some("the job was deleted".to_owned()),
                ),
                Err(error) => (Status::Error, sent.result.clone(), Some(error.to_string())),
            };
            // The script is known where it came from.
            ContextJob {
                script: String::new(),
                env_vars: meshwork_model::secret::EnvVars::default(),
                status,
                result,
                error,
                ..sent.clone()
            }
        };
        Ok(sent.map(result).collect())
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
        let caller = sent.caller_id;
        let (counter, prefix) = (
            self.keys().next_id(Counter::Message),
            self.keys().message_prefix(caller),
        );
        let drawn = self
            .store()
            .draw(self.database(), &counter, &prefix)
            .await?;
        let id = drawn.ok_or(ContextError::NoNumber("message"))?;
        let now = self.node().now().await?;
        let key = MessageKey { caller, id };
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
        Ok(commit
            .absent(&element)
            .set(&element, answer.to_fields())
            .set(&element, [(field::NONCE, nonce.as_str()), (field::RE, &re)])
            .push(&self.keys().msg_out(), element.as_bytes()))
    }
}
