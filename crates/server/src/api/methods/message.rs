//! Methods of the messages of a context.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use meshwork::context::{Coordinator, MessageJob, MessageView, NewMessage};
use meshwork_model::api_key::Scope;
use meshwork_model::context::{ContextJob, MessageType};
use meshwork_model::keys::context::MessageKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::{Span, parse, parse_some};
use meshwork_ops::{Paging, With, number};

/// Greatest number of messages that one call reads.
const MOST_READ: u16 = 1000;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::{User, Viewer};
    vec![
        Method::new(
            ("message.create", User),
            (Post, "/v1/contexts/{context}/messages"),
            "Send a message of a context, without a signature",
            create,
        )
        .also(&["message.send"])
        .in_contexts(),
        Method::new(
            ("message.cancel", User),
            (Post, "/v1/contexts/{context}/messages/{id}/cancel"),
            "Cancel a message that was sent from a context; its target decides the outcome",
            cancel,
        )
        .in_contexts(),
        Method::new(
            ("message.get", Viewer),
            (Get, "/v1/contexts/{context}/messages/{id}"),
            "Read a message",
            get,
        )
        .in_contexts(),
        Method::new(
            ("message.list", Viewer),
            (Get, "/v1/contexts/{context}/messages"),
            "List the messages of a context, the latest first; reads all of them",
            list,
        )
        .in_contexts(),
        Method::new(
            ("message.read", User),
            (Post, "/v1/contexts/{context}/messages/read"),
            "Take received messages off the inbox of a context, the earliest first; chat and mail are processed by that",
            read,
        )
        .in_contexts(),
        Method::new(
            ("message.delete", User),
            (Delete, "/v1/contexts/{context}/messages/{id}"),
            "Delete a message, sent or received; one whose jobs may run is refused",
            delete,
        )
        .in_contexts(),
    ]
}

/// A new message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "MessageCreateParams")]
struct CreateParams {
    /// Number of the context that sends it.
    context: u32,
    /// Number of the context that receives it.
    to: u32,
    /// Name of the node of that context. Default: this node.
    node: Option<String>,
    /// The text.
    #[serde(default)]
    text: String,
    /// `job`, `chat` or `mail`. Default: `job` if there are jobs, else `chat`.
    #[serde(rename = "type")]
    message_type: Option<String>,
    /// `html`, `text` or `md`. Default: `text`.
    format: Option<String>,
    /// Jobs that it requests.
    #[serde(default)]
    jobs: Vec<JobParams>,
    /// Topic of the runner that gets the jobs, as `runner20`. Default: any worker of their types.
    topic: Option<String>,
    /// Longest time until the target has stored it. Default: 1 h.
    timeout: Option<Span>,
    /// Longest time until it is acknowledged. Default: 2 h.
    timeout_ack: Option<Span>,
    /// Longest time until it is processed. Default: 24 h.
    timeout_result: Option<Span>,
}

/// A job of a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "MessageJobParams")]
struct JobParams {
    /// Type of the script.
    #[serde(rename = "type")]
    script_type: String,
    /// Text of the script.
    script: String,
    /// Longest time of one run.
    timeout: Option<Span>,
    /// Number of retries, 0 to 100.
    #[serde(default)]
    retries: u8,
    /// Environment of the script.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Jobs of the message that must finish first, by number from 0.
    #[serde(default)]
    after: Vec<usize>,
}

/// Whole seconds, at least 1.
fn seconds(span: Span) -> u32 {
    u32::try_from(span.0.as_secs().max(1)).unwrap_or(u32::MAX)
}

impl CreateParams {
    fn message(self) -> Result<NewMessage, ApiError> {
        let default = match self.jobs.is_empty() {
            true => MessageType::Chat,
            false => MessageType::Job,
        };
        let given = parse_some("type", self.message_type.as_deref())?;
        let mut new = NewMessage::new(number(self.to)?, given.unwrap_or(default));
        if let Some(format) = parse_some("format", self.format.as_deref())? {
            new.format = format;
        }
        for job in self.jobs {
            new.jobs.push(MessageJob {
                script_type: parse("type", &job.script_type)?,
                script: job.script,
                timeout: job.timeout.map(seconds),
                retries: job.retries,
                env_vars: job.env.into(),
                after: job.after,
            });
        }
        new.timeout = self.timeout.map_or(new.timeout, seconds);
        new.timeout_ack = self.timeout_ack.map_or(new.timeout_ack, seconds);
        new.timeout_result = self.timeout_result.map_or(new.timeout_result, seconds);
        new.topic = self.topic;
        new.text = self.text;
        new.signed = false;
        Ok(new)
    }
}

/// A message that was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "CreatedMessage")]
struct Created {
    /// Its key, as `12:101`: the actor, and the number among his messages.
    id: String,
    /// Its state.
    status: String,
}

async fn create(call: Call, params: CreateParams) -> Result<Reply<Created>, ApiError> {
    let from = params.context;
    call.check_context(number(params.to)?)?;
    let name = parse_some("node", params.node.as_deref())?;
    let mut new = params.message()?;
    if let (Some(name), Some(own)) = (&name, call.access.context()) {
        let message = format!(
            "node: this key is for context {own} alone, and sends nothing to the node {name}"
        );
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let (context, caller) = call.context(Some(from)).await?;
    if let Some(name) = &name {
        new.node = Some(context.node().peer_named(name).await?.card.node);
    }
    let message = context.send_unsigned(&caller, &new).await?;
    let (id, status) = (message.key().numbers(), message.status.to_string());
    Ok(Reply::new(&Created { id, status }))
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "MessageParams")]
struct IdParams {
    /// Number of the context.
    context: u32,
    /// Key of the message, as `12:101`.
    id: String,
}

async fn cancel(call: Call, params: IdParams) -> Result<Reply<MessageView>, ApiError> {
    let key = key(&params.id)?;
    let (context, caller) = call.context(Some(params.context)).await?;
    let message = context.cancel_message(&caller, key).await?;
    Ok(Reply::new(&open_view(message)))
}

fn key(id: &str) -> Result<MessageKey, ApiError> {
    MessageKey::of_numbers(id).map_err(|error| ApiError::invalid(format!("id: {error}")))
}

async fn get(call: Call, params: IdParams) -> Result<Reply<MessageView>, ApiError> {
    let key = key(&params.id)?;
    let (context, caller) = call.context(Some(params.context)).await?;
    let message = context.message(&caller, key).await?;
    Ok(Reply::new(&open_view(message)))
}

/// Hides the values of secrets in the environment of a job.
pub(in crate::api) fn masked(mut job: ContextJob) -> ContextJob {
    let env = job.env_vars.shown();
    job.env_vars = env
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    job
}

/// Hides the values of secrets in a message, and the envelope, which has them too.
pub(in crate::api) fn open_view(mut view: MessageView) -> MessageView {
    let jobs: Vec<_> = view.message.job.iter().cloned().map(masked).collect();
    if jobs != view.message.job {
        view.message.envelope = None;
    }
    view.message.job = jobs;
    view
}

/// A page of messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "MessageListParams")]
struct ListParams {
    /// Number of the context.
    context: u32,
}

/// Page of messages.
#[derive(Debug, Serialize, JsonSchema)]
struct MessagePage {
    /// The messages, the latest first.
    messages: Vec<MessageView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(
    call: Call,
    params: With<Paging, ListParams>,
) -> Result<Reply<MessagePage>, ApiError> {
    params.beside.limit()?;
    let (context, caller) = call.context(Some(params.context)).await?;
    let all = context.messages(&caller).await?;
    let (page, next) = params.beside.page(all)?;
    let messages = page.into_iter().map(open_view).collect();
    Ok(Reply::new(&MessagePage { messages, next }))
}

/// Messages to be read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "MessageReadParams")]
struct ReadParams {
    /// Number of the context.
    context: u32,
    /// Greatest number of messages, 1 to 1000. Default: 100.
    limit: Option<NonZeroU16>,
}

/// Messages that were read.
#[derive(Debug, Serialize, JsonSchema)]
struct ReadMessages {
    /// The messages, the earliest first.
    messages: Vec<MessageView>,
}

async fn read(call: Call, params: ReadParams) -> Result<Reply<ReadMessages>, ApiError> {
    let most = params.limit.map_or(100, NonZeroU16::get);
    if most > MOST_READ {
        let message = format!("limit: {most} is more than {MOST_READ}");
        return Err(ApiError::invalid(message));
    }
    let (context, caller) = call.context(Some(params.context)).await?;
    let coordinator = Coordinator::new(context.node()).await?;
    let transport = coordinator.transport();
    let read = context.read_inbox(&caller, transport, most.into()).await?;
    let messages = read.into_iter().map(open_view).collect();
    Ok(Reply::new(&ReadMessages { messages }))
}

/// A message that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
struct DeletedMessage {
    /// Its key, as `12:101`.
    id: String,
    /// `deleted`.
    result: &'static str,
}

async fn delete(call: Call, params: IdParams) -> Result<Reply<DeletedMessage>, ApiError> {
    let key = key(&params.id)?;
    let (context, caller) = call.context(Some(params.context)).await?;
    context.delete_message(&caller, key).await?;
    let (id, result) = (key.numbers(), "deleted");
    Ok(Reply::new(&DeletedMessage { id, result }))
}
