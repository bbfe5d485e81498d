//! Places that wait for a message: a job in another context, to which a message brings it, and a message of somebody. The
//! end of the message is that of the place.

use std::collections::BTreeMap;

use meshwork_flow::run::{Decision, End};
use meshwork_model::context::{MessageStatus, MessageType, field};
use meshwork_model::flow::{Run, Wait, Work};
use meshwork_model::keys::context::{ActorId, JobKey};
use meshwork_model::state::Status;
use serde_json::{Value, json};

use super::output;
use super::sender::{SENT, Sender, Waiting};
use super::step::Step;
use super::view::View;
use super::{FlowError, node};
use crate::context::{ContextError, MessageJob, MessageView, NewMessage, Outcome};

/// Shortest and longest time between two looks for the end of a message, in milliseconds.
const LOOK_AGAIN_MS: [u64; 2] = [200, 5_000];
/// Share of the age of the place in the time until the next look: 1/10.
const AGE_SHARE: u64 = 10;

impl Step<'_> {
    /// Returns the end of a place that waits for a message, if there is one. Sends the message of a job that has none.
    pub(super) async fn message_end(
        &mut self,
        waiting: &Waiting<'_>,
    ) -> Result<Option<End>, FlowError> {
        let Some(sender) = self.sender else {
            // Another worker has the key of an actor.
            return Ok(None);
        };
        let age = self.now.saturating_sub(waiting.since);
        let [least, most] = LOOK_AGAIN_MS;
        self.look_at(Some(self.now + (age / AGE_SHARE).clamp(least, most)));
        let ended = match &self.plan.jobs[waiting.at.0].work {
            Work::Run(run) => match waiting.sent {
                Some(sent) => sender.end_of(sent).await,
                None => self.send(sender, run, waiting).await.map(|()| None),
            },
            Work::Wait(Wait::Message { message_type, from }) => {
                let found = sender.arrived(message_type, *from, waiting.since).await;
                found.map(|text| text.map(|text| End::Finished(Value::String(text))))
            }
            _ => Ok(None),
        };
        match ended {
            Err(error) if error.is_permanent() => Ok(Some(End::Failed(error.to_string()))),
            ended => Ok(ended?),
        }
    }

    /// Sends the message of a job in another context, once: the job records the message in the same step.
    async fn send(
        &self,
        sender: &Sender,
        run: &Run,
        waiting: &Waiting<'_>,
    ) -> Result<(), ContextError> {
        let Some(target) = &run.context else {
            return Ok(());
        };
        let plan_node = &self.plan.jobs[waiting.at.0];
        let mut new = NewMessage::new(target.context, MessageType::Job);
        if let Some(name) = &target.node {
            new.node = Some(sender.context.node().peer_named(name).await?.card.node);
        }
        let record = sender.context.keys().job(waiting.key);
        let fields = sender
            .context
            .store()
            .hash(sender.context.database(), &record)
            .await?;
        let env = fields.iter().find(|(name, _)| name == field::ENV_VARS);
        let env: BTreeMap<String, String> = env
            .and_then(|(_, json)| serde_json::from_slice(json).ok())
            .unwrap_or_default();
        let invalid = |why: String| ContextError::InvalidMessage(why);
        let retries =
            u8::try_from(plan_node.retries).map_err(|error| invalid(error.to_string()))?;
        let script_type = run.script_type.parse();
        let seconds = plan_node.timeout_ms.map(|ms| (ms / 1000).max(1));
        new.jobs = vec![MessageJob {
            script_type: script_type
                .map_err(|error: meshwork_model::name::NameError| invalid(error.to_string()))?,
            script: node::text(self.plan, plan_node),
            timeout: seconds.map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
            retries,
            env_vars: env.into_iter().collect::<BTreeMap<_, _>>().into(),
            after: Vec::new(),
        }];
        let marked = (record.as_str(), SENT);
        sender.context.send_for(&sender.me, &new, marked).await
    }
}

impl Step<'_> {
    /// Cancels the message of a job in another context that the flow cancels. Its place does not wait for the target.
    pub(super) async fn recall(&self, view: &View, decision: &Decision) -> Result<(), FlowError> {
        let (Decision::Stop { job, item }, Some(sender)) = (decision, self.sender) else {
            return Ok(());
        };
        let far = matches!(&self.plan.jobs[*job].work, Work::Run(run) if run.context.is_some());
        let Some(key) = view.job(self.plan, (*job, *item)).filter(|_| far) else {
            return Ok(());
        };
        match sender.recall(key).await {
            // The message is gone, or the actor lost the right: the flow ends nevertheless.
            Err(error) if error.is_permanent() => Ok(()),
            recalled => Ok(recalled?),
        }
    }
}

impl Sender {
    /// Cancels the message that was sent for a job, if there is one.
    async fn recall(&self, job: JobKey) -> Result<(), ContextError> {
        let (context, record) = (&self.context, self.context.keys().job(job));
        let fields = context.store().hash(context.database(), &record).await?;
        let sent = fields.iter().find(|(name, _)| name == SENT);
        let sent = sent.and_then(|(_, key)| context.keys().parse_message(key).ok());
        match sent {
            Some(key) => context.cancel_message(&self.me, key).await.map(drop),
            None => Ok(()),
        }
    }

    /// Returns the end of a sent message; `None` while it is open.
    async fn end_of(&self, sent: &str) -> Result<Option<End>, ContextError> {
        let gone = || Ok(Some(End::Failed(format!("its message {sent} was deleted"))));
        let Ok(key) = self.context.keys().parse_message(sent.as_bytes()) else {
            return gone();
        };
        let Some(view) = self.context.message_of(key).await? else {
            return gone();
        };
        let Some(outcome) = view.outcome() else {
            return Ok(None);
        };
        let result = view.result.as_deref().unwrap_or_default();
        let result = match self.context.keys().parse_message(result.as_bytes()) {
            Ok(key) => self.context.message_of(key).await?,
            Err(_) => None,
        };
        Ok(Some(end(&view, outcome, result.as_ref())))
    }

    /// Returns the text of the first message of this type from this actor that has arrived since a time.
    async fn arrived(
        &self,
        message_type: &str,
        from: u32,
        since: u64,
    ) -> Result<Option<String>, ContextError> {
        let Ok(message_type) = message_type.parse() else {
            let why = format!("{message_type:?} is no type of a message: job, chat or mail");
            return Err(ContextError::InvalidMessage(why));
        };
        let found = self
            .context
            .arrived(ActorId(from), message_type, since)
            .await?;
        Ok(found.map(|view| view.message.message))
    }
}

/// Returns the end of a job from its message and the result.
fn end(view: &MessageView, outcome: Outcome, result: Option<&MessageView>) -> End {
    let job = result.and_then(|result| result.message.job.first());
    if let (MessageStatus::Processed, Some(job)) = (view.message.status, job)
        && job.status == Status::Finished
    {
        return End::Finished(output(Some(json!(job.result).to_string().into_bytes())));
    }
    let error = job.and_then(|job| job.error.clone());
    let log = || view.message.logs.last().map(|log| log.text.clone());
    let text = error.or_else(log).unwrap_or_default();
    let (key, outcome) = (view.message.key(), outcome.as_str());
    End::Failed(format!("{key}: {outcome}: {text}"))
}
