//! Sending messages: numbers for their jobs, and signed envelopes.

use meshwork_broker::context::{Commit, Committed};
use meshwork_macros::boxed;
use meshwork_model::access::{Object, Operation};
use meshwork_model::actor_key::{KeyBytes, SecretKey};
use meshwork_model::context::{
    ContextJob, Message, MessageFormat, MessageType, NodeId, field, limits,
};
use meshwork_model::envelope::{Body, Destination, Nonce, Source};
use meshwork_model::keys::context::{ActorId, ContextId, Counter, JobKey, MessageKey};
use meshwork_model::name::ScriptType;
use meshwork_model::secret::EnvVars;
use meshwork_model::state::Status;

use crate::context::audit::Change;
use crate::context::messages::message::next_look_ms;
use crate::context::{Acting, ContextError, ContextHandle, Identity, TRIES};

/// A message to send.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Context that receives it.
    pub to: ContextId,
    /// Node of that context. Default: this node.
    pub node: Option<NodeId>,
    /// Type: job, chat or mail.
    pub message_type: MessageType,
    /// Topic of the runner that gets the jobs, as `runner20`. Default: any worker of their types.
    pub topic: Option<String>,
    /// Format of the text.
    pub format: MessageFormat,
    /// Text, at most [`limits::MAX_MESSAGE`] bytes.
    pub text: String,
    /// Jobs to run: at least one in a message of type `job`, none in others.
    pub jobs: Vec<MessageJob>,
    /// Seconds until the target has stored it. Default: [`limits::DEFAULT_TIMEOUT`].
    pub timeout: u32,
    /// Seconds until it is acknowledged. Default: [`limits::DEFAULT_TIMEOUT_ACK`].
    pub timeout_ack: u32,
    /// Seconds until it is processed. Default: [`limits::DEFAULT_TIMEOUT_RESULT`].
    pub timeout_result: u32,
    /// True for a signed message. Default: true.
    pub signed: bool,
}

/// A job of a message.
#[derive(Debug, Clone)]
pub struct MessageJob {
    /// Script type.
    pub script_type: ScriptType,
    /// Script.
    pub script: String,
    /// Timeout of an attempt, in seconds. Default: that of jobs.
    pub timeout: Option<u32>,
    /// Number of attempts after the first one.
    pub retries: u8,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// Prerequisites among the jobs of the message, by index from 0.
    pub after: Vec<usize>,
}

/// Returns nothing if the server's ACL forbids the call: a user of one context may not read the target of a message.
/// The coordinator checks it in any case.
fn unless_denied<T>(result: Result<T, ContextError>) -> Result<Option<T>, ContextError> {
    match result {
        Err(ContextError::Broker(error)) if error.is_denied() => Ok(None),
        result => result.map(Some),
    }
}

/// Returns a commit that names the message in the field of a started job, if the field is empty.
fn marked_commit(marked: Option<(&str, &str)>, element: &str) -> Commit {
    match marked {
        Some((record, field)) => Commit::default()
            .is(record, field, b"")
            .is(record, field::STATUS, Status::Started.as_str().as_bytes())
            .set(record, [(field, element)]),
        None => Commit::default(),
    }
}

impl NewMessage {
    /// Creates a message without text and jobs.
    #[must_use]
    pub const fn new(to: ContextId, message_type: MessageType) -> Self {
        Self {
            to,
            node: None,
            topic: None,
            message_type,
            format: MessageFormat::Text,
            text: String::new(),
            jobs: Vec::new(),
            timeout: limits::DEFAULT_TIMEOUT,
            timeout_ack: limits::DEFAULT_TIMEOUT_ACK,
            timeout_result: limits::DEFAULT_TIMEOUT_RESULT,
            signed: true,
        }
    }

    fn check(&self) -> Result<Object, ContextError> {
        let refused = |why: &str| Err(ContextError::InvalidMessage(why.to_owned()));
        if self.topic.is_some() && self.message_type != MessageType::Job {
            return refused("only a job message has a topic");
        }
        match (self.message_type, self.jobs.is_empty()) {
            (MessageType::Job, false) => Ok(Object::JobMessage),
            (MessageType::Job, true) => refused("a job message asks for at least one job"),
            (MessageType::Chat | MessageType::Mail, true) => Ok(Object::Chat),
            (MessageType::Chat | MessageType::Mail, false) => {
                refused("only a job message asks for jobs")
            }
            (MessageType::Result, _) => {
                refused("the coordinator sends results, when all jobs of a message have ended")
            }
        }
    }
}

impl ContextHandle {
    /// Sends a message to a context of this node or of a trusted one, signed with the actor's key.
    ///
    /// # Errors
    /// [`ContextError::InvalidMessage`], [`ContextError::NoContext`], [`ContextError::Denied`] by a context of this node,
    /// [`ContextError::PeerNotTrusted`],
    /// [`ContextError::Record`] if a field is over its limit, or a call to the server fails.
    #[boxed]
    pub async fn send(&self, me: &Identity, new: &NewMessage) -> Result<Message, ContextError> {
        let key = new.signed.then(|| me.key());
        let sent = self.send_as(me, key, new, None).await?;
        sent.ok_or_else(|| ContextError::Busy("the numbers of messages".to_owned()))
    }

    /// Sends a signed message for a started job, once: the field of the job's record that is empty before names the message
    /// after that.
    #[cfg(feature = "scripts")]
    pub(crate) async fn send_for(
        &self,
        me: &Identity,
        new: &NewMessage,
        marked: (&str, &str),
    ) -> Result<(), ContextError> {
        let sent = self.send_as(me, Some(me.key()), new, Some(marked));
        sent.await.map(drop)
    }

    /// Sends a message without a signature, for a caller whose secret key is not here.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub async fn send_unsigned(
        &self,
        me: &impl Acting,
        new: &NewMessage,
    ) -> Result<Message, ContextError> {
        let sent = self.send_as(me, None, new, None).await?;
        sent.ok_or_else(|| ContextError::Busy("the numbers of messages".to_owned()))
    }

    async fn send_as(
        &self,
        me: &impl Acting,
        signing: Option<&SecretKey>,
        new: &NewMessage,
        marked: Option<(&str, &str)>,
    ) -> Result<Option<Message>, ContextError> {
        let object = new.check()?;
        let here = self.node().identity().await?;
        let there = new.node.filter(|node| *node != here);
        let target = self.target_of(new, there, signing.is_some()).await?;
        self.allow_caller(me, object, Operation::Create).await?;
        if let Some(target) = &target {
            unless_denied(target.allow_caller(me, object, Operation::Create).await)?;
            let types = new.jobs.iter().map(|job| &job.script_type);
            let runner = target.runner_of(new.topic.as_deref(), types).await;
            if let Some(Err(reason)) = unless_denied(runner)? {
                return Err(ContextError::InvalidMessage(reason.text));
            }
        }
        let now = self.node().now().await?;
        let jobs = self.jobs_of(me, new, now).await?;
        for _ in 0..TRIES {
            let key = self.next_message(me.id()).await?;
            let mut message = Message {
                message_format_type: new.format,
                timeout: new.timeout,
                timeout_ack: new.timeout_ack,
                timeout_result: new.timeout_result,
                job: jobs.clone(),
                target_context: Some(new.to),
                target_node: there,
                topic: new.topic.clone(),
                ..Message::new(self.id(), key, new.message_type, new.text.clone(), now)
            };
            message.check()?;
            let nonce = Nonce(rand::random());
            if let Some(key) = signing {
                message.envelope = Some(self.sealed(key, &message, nonce, here)?);
            }
            let element = self.keys().message(key);
            let change = Change {
                who: &me.to_string(),
                what: "send",
                object: &element,
                after: message.message_type.as_str(),
                ..Change::default()
            };
            let commit = marked_commit(marked, &element);
            let commit = self
                .kept(commit, &element, now)
                .absent(&element)
                .set(&element, message.to_fields())
                .set(&element, [(field::NONCE, nonce.to_string().as_str())])
                .mark(
                    &self.keys().index(Counter::Message),
                    now.into(),
                    element.as_bytes(),
                )
                .mark(
                    &self.keys().sent(),
                    next_look_ms(&message, now),
                    element.as_bytes(),
                )
                .push(&self.keys().msg_out(), element.as_bytes());
            let commit = change.noted(commit, &self.keys().audit());
            match self.commit(&commit).await? {
                Committed::Done => return Ok(Some(message)),
                // The job has its message, or has ended.
                Committed::Unmet(1 | 2) if marked.is_some() => return Ok(None),
                Committed::Unmet(_) => {}
            }
        }
        Err(ContextError::Busy("the numbers of messages".to_owned()))
    }

    /// Returns the target of a message, if it is on this node and may be read. `there`: another node, which has to be
    /// trusted.
    async fn target_of(
        &self,
        new: &NewMessage,
        there: Option<NodeId>,
        is_signed: bool,
    ) -> Result<Option<Self>, ContextError> {
        match there {
            None => unless_denied(self.node().context(new.to).await),
            Some(_) if !is_signed => {
                let why = "a message to another node is signed";
                Err(ContextError::InvalidMessage(why.to_owned()))
            }
            Some(node) => match unless_denied(self.node().trusted_peer(node).await)? {
                Some(None) => Err(ContextError::PeerNotTrusted(node.to_string())),
                _ => Ok(None),
            },
        }
    }

    /// Draws the key of the next message of an actor.
    pub(crate) async fn next_message(&self, caller: ActorId) -> Result<MessageKey, ContextError> {
        let (counter, prefix) = (
            self.keys().next_id(Counter::Message),
            self.keys().message_prefix(caller),
        );
        let drawn = self
            .store()
            .draw(self.database(), &counter, &prefix)
            .await?;
        let id = drawn.ok_or(ContextError::NoNumber("message"))?;
        Ok(MessageKey { caller, id })
    }

    /// Returns the jobs of a message, each with a number of this context.
    async fn jobs_of(
        &self,
        me: &impl Acting,
        new: &NewMessage,
        now: u32,
    ) -> Result<Vec<ContextJob>, ContextError> {
        if new.jobs.len() > limits::MAX_MESSAGE_JOBS {
            let most = limits::MAX_MESSAGE_JOBS;
            return Err(ContextError::InvalidMessage(format!(
                "it asks for more than {most} jobs"
            )));
        }
        let (counter, prefix) = (
            self.keys().next_id(Counter::Job),
            self.keys().job_prefix(me.id()),
        );
        let mut jobs: Vec<ContextJob> = Vec::with_capacity(new.jobs.len());
        for job in &new.jobs {
            let drawn = self
                .store()
                .draw(self.database(), &counter, &prefix)
                .await?;
            let id = drawn.ok_or(ContextError::NoNumber("job"))?;
            let after = job.after.iter().map(|at| {
                let before = jobs.get(*at).map(|job| job.id);
                before.ok_or_else(|| {
                    ContextError::InvalidMessage(
                        "a job depends on one that does not precede it".to_owned(),
                    )
                })
            });
            let dependends = after.collect::<Result<_, _>>()?;
            let key = JobKey {
                caller: me.id(),
                id,
            };
            let made = ContextJob::new(
                self.id(),
                key,
                job.script_type.clone(),
                job.script.clone(),
                now,
            );
            let timeout = job.timeout.unwrap_or(made.timeout);
            jobs.push(ContextJob {
                timeout,
                retries: job.retries,
                env_vars: job.env_vars.clone(),
                dependends,
                ..made
            });
        }
        Ok(jobs)
    }

    fn sealed(
        &self,
        key: &SecretKey,
        message: &Message,
        nonce: Nonce,
        node: NodeId,
    ) -> Result<String, ContextError> {
        let src = Source {
            node,
            context: self.id(),
            actor: KeyBytes::from(key.public()),
        };
        let dst = Destination {
            node: message.target_node.unwrap_or(node),
            context: message.target_context.unwrap_or(self.id()),
            actor: None,
            topic: message.topic.clone(),
        };
        Ok(Body::of(message, nonce, src, dst).seal(&[key])?)
    }
}
