//! Objects of contexts by the names of Hero's coordinator. Flows and jobs are stored as a plain client writes them.

use std::collections::BTreeMap;

use meshwork::context::{Caller, ContextHandle, NewMessage, NewRunner};
use meshwork::view::{ActorView, ContextView, RunnerView};
use meshwork_broker::context::Commit;
use meshwork_model::access::{Object, Operation, Role};
use meshwork_model::context::{ContextJob, Flow, FlowStatus, MessageType};
use meshwork_model::keys::context::{ActorId, FlowId, JobKey, MessageKey, RunnerId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::methods::context::read_actor;
use crate::api::methods::message::{masked, open_view};
use meshwork_ops::number;
use meshwork_ops::params::{parse, parse_some};

/// The one parameter of all methods.
#[derive(Debug, Deserialize)]
pub(super) struct Wrapped<P> {
    params: P,
}

/// An object of a node.
#[derive(Debug, Deserialize)]
pub(super) struct OfNode {
    id: u32,
}

/// An object of a context.
#[derive(Debug, Deserialize)]
pub(super) struct OfContext {
    context_id: u32,
    id: u32,
    caller_id: Option<u32>,
}

fn conflict(key: &str) -> ApiError {
    ApiError::new(Code::Conflict, format!("there is a record {key} already"))
}

/// A caller creates objects of its own.
fn own(caller: &Caller, given: Option<u32>) -> Result<(), ApiError> {
    match given {
        Some(id) if id != caller.id().0 => {
            let message = format!("caller_id: the caller is actor {}", caller.id());
            Err(ApiError::new(Code::Forbidden, message))
        }
        _ => Ok(()),
    }
}

/// Stores a record that must not exist.
async fn store(
    context: &ContextHandle,
    caller: &Caller,
    key: &str,
    fields: Vec<(String, String)>,
) -> Result<(), ApiError> {
    let commit = Commit::default().absent(key).set(key, fields);
    let committed = context.node().store().commit(context.database(), &commit);
    match committed.await?.is_done() {
        true => Ok(context.noted(caller, "create", key).await?),
        false => Err(conflict(key)),
    }
}

/// Seconds since 1970.
async fn now(context: &ContextHandle) -> Result<u32, ApiError> {
    let ms = context.node().store().now().await?;
    Ok(u32::try_from(ms / 1000).unwrap_or(u32::MAX))
}

/// A new actor.
#[derive(Debug, Deserialize)]
pub(super) struct NewActor {
    id: Option<u32>,
    pubkey: String,
}

pub(super) async fn create_actor(
    call: Call,
    Wrapped { params }: Wrapped<NewActor>,
) -> Result<ActorView, ApiError> {
    let key = parse("pubkey", &params.pubkey)?;
    let actor = call.node().trust(key, params.id.map(ActorId)).await?;
    Ok(ActorView::from(&actor))
}

pub(super) async fn load_actor(
    call: Call,
    Wrapped { params }: Wrapped<OfNode>,
) -> Result<ActorView, ApiError> {
    read_actor(&call, ActorId(params.id)).await
}

/// A new context.
#[derive(Debug, Deserialize)]
pub(super) struct NewContext {
    id: Option<u32>,
    #[serde(default)]
    admins: Vec<u32>,
    #[serde(default)]
    readers: Vec<u32>,
    #[serde(default)]
    executors: Vec<u32>,
}

pub(super) async fn create_context(
    call: Call,
    Wrapped { params }: Wrapped<NewContext>,
) -> Result<ContextView, ApiError> {
    let (node, caller) = (call.node(), call.trusted().await?);
    let id = params.id.map(number).transpose()?;
    let context = node.create_context(&caller, id, None).await?;
    let lists = [
        (Role::Admin, params.admins),
        (Role::Reader, params.readers),
        (Role::Executor, params.executors),
    ];
    for (role, actors) in lists {
        let record = context.show(&caller).await?;
        let has = match role {
            Role::Admin => record.admins,
            Role::Reader => record.readers,
            _ => record.executors,
        };
        for actor in actors
            .into_iter()
            .map(ActorId)
            .filter(|actor| !has.contains(actor))
        {
            context.grant(&caller, role, actor).await?;
        }
    }
    let record = context.show(&caller).await?;
    Ok(ContextView::new(&context, &record))
}

pub(super) async fn load_context(
    call: Call,
    Wrapped { params }: Wrapped<OfNode>,
) -> Result<ContextView, ApiError> {
    let (context, caller) = call.context(Some(params.id)).await?;
    let record = context.show(&caller).await?;
    Ok(ContextView::new(&context, &record))
}

/// A new runner.
#[derive(Debug, Deserialize)]
pub(super) struct HeroRunner {
    context_id: u32,
    id: Option<u32>,
    pubkey: Option<String>,
    address: Option<String>,
    topic: Option<String>,
    #[serde(alias = "script_type", alias = "type")]
    types: String,
}

pub(super) async fn create_runner(
    call: Call,
    Wrapped { params }: Wrapped<HeroRunner>,
) -> Result<RunnerView, ApiError> {
    let types = params
        .types
        .split(',')
        .map(|name| parse("type", name.trim()));
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let new = NewRunner {
        id: params.id.map(RunnerId),
        types: types.collect::<Result<_, _>>()?,
        local: true,
        topic: some(params.topic),
        pubkey: parse_some("pubkey", some(params.pubkey).as_deref())?,
        address: parse_some("address", some(params.address).as_deref())?,
    };
    let (context, caller) = call.context(Some(params.context_id)).await?;
    let runner = context.register_runner(&caller, &new).await?;
    Ok(RunnerView::from(&runner))
}

pub(super) async fn load_runner(
    call: Call,
    Wrapped { params }: Wrapped<OfContext>,
) -> Result<RunnerView, ApiError> {
    let (context, caller) = call.context(Some(params.context_id)).await?;
    let runner = context.runner(&caller, RunnerId(params.id)).await?;
    Ok(RunnerView::from(&runner))
}

/// A new message.
#[derive(Debug, Deserialize)]
pub(super) struct HeroMessage {
    context_id: u32,
    caller_id: Option<u32>,
    message: String,
    message_type: Option<String>,
    message_format_type: Option<String>,
    #[serde(alias = "to")]
    target_context: Option<u32>,
}

pub(super) async fn create_message(
    call: Call,
    Wrapped { params }: Wrapped<HeroMessage>,
) -> Result<Value, ApiError> {
    let kind = parse_some("message_type", params.message_type.as_deref())?;
    let to = number(params.target_context.unwrap_or(params.context_id))?;
    let mut new = NewMessage::new(to, kind.unwrap_or(MessageType::Chat));
    if let Some(format) = parse_some("message_format_type", params.message_format_type.as_deref())?
    {
        new.format = format;
    }
    new.text = params.message;
    new.signed = false;
    call.check_context(to)?;
    let (context, caller) = call.context(Some(params.context_id)).await?;
    own(&caller, params.caller_id)?;
    let message = context.send_unsigned(&caller, &new).await?;
    written(&message)
}

fn written(record: &impl Serialize) -> Result<Value, ApiError> {
    let failed = |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
    serde_json::to_value(record).map_err(failed)
}

pub(super) async fn load_message(
    call: Call,
    Wrapped { params }: Wrapped<OfContext>,
) -> Result<Value, ApiError> {
    let (context, caller) = call.context(Some(params.context_id)).await?;
    let sender = params.caller_id.map_or(caller.id(), ActorId);
    let key = MessageKey {
        caller: sender,
        id: params.id,
    };
    written(&open_view(context.message(&caller, key).await?))
}

/// A new job, which waits in no queue.
#[derive(Debug, Deserialize)]
pub(super) struct PlainJob {
    context_id: u32,
    id: u32,
    caller_id: Option<u32>,
    script: String,
    script_type: String,
    timeout: Option<u32>,
    retries: Option<u8>,
    #[serde(default)]
    env_vars: BTreeMap<String, String>,
    #[serde(default)]
    prerequisites: Vec<String>,
    #[serde(default)]
    dependends: Vec<u32>,
}

pub(super) async fn create_job(
    call: Call,
    Wrapped { params }: Wrapped<PlainJob>,
) -> Result<Value, ApiError> {
    let kind = params.script_type.to_ascii_lowercase();
    let script_type = parse("script_type", &kind)?;
    let (context, caller) = call.context(Some(params.context_id)).await?;
    own(&caller, params.caller_id)?;
    context
        .allow_caller(&caller, Object::Job, Operation::Create)
        .await?;
    let key = JobKey {
        caller: caller.id(),
        id: params.id,
    };
    let made = ContextJob::new(
        context.id(),
        key,
        script_type,
        params.script,
        now(&context).await?,
    );
    let job = ContextJob {
        timeout: params.timeout.unwrap_or(made.timeout),
        retries: params.retries.unwrap_or(0),
        env_vars: params.env_vars.into(),
        prerequisites: params.prerequisites,
        dependends: params.dependends,
        ..made
    };
    job.check()
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    store(&context, &caller, &context.keys().job(key), job.to_fields()).await?;
    written(&masked(job))
}

pub(super) async fn load_job(
    call: Call,
    Wrapped { params }: Wrapped<OfContext>,
) -> Result<Value, ApiError> {
    let (context, caller) = call.context(Some(params.context_id)).await?;
    context
        .allow_caller(&caller, Object::Job, Operation::Read)
        .await?;
    let key = JobKey {
        caller: params.caller_id.map_or(caller.id(), ActorId),
        id: params.id,
    };
    let fields = context.node().store();
    let fields = fields
        .hash(context.database(), &context.keys().job(key))
        .await?;
    if fields.is_empty() {
        return Err(ApiError::new(
            Code::NotFound,
            format!("there is no job {key}"),
        ));
    }
    let job = ContextJob::from_fields(context.id(), key, fields);
    let job = job.map_err(|error| ApiError::new(Code::Conflict, error.to_string()))?;
    written(&masked(job))
}

/// A new flow of jobs that are stored.
#[derive(Debug, Deserialize)]
pub(super) struct PlainFlow {
    context_id: u32,
    id: u32,
    caller_id: Option<u32>,
    jobs: Vec<u32>,
    #[serde(default)]
    env_vars: BTreeMap<String, String>,
}

pub(super) async fn create_flow(
    call: Call,
    Wrapped { params }: Wrapped<PlainFlow>,
) -> Result<Value, ApiError> {
    let (context, caller) = call.context(Some(params.context_id)).await?;
    own(&caller, params.caller_id)?;
    context
        .allow_caller(&caller, Object::Flow, Operation::Create)
        .await?;
    let now = now(&context).await?;
    let flow = Flow {
        id: FlowId(params.id),
        caller_id: caller.id(),
        context_id: context.id(),
        jobs: params.jobs,
        env_vars: params.env_vars.into(),
        result: BTreeMap::new(),
        created_at: now,
        updated_at: now,
        status: FlowStatus::Dispatched,
    };
    flow.check()
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    store(
        &context,
        &caller,
        &context.keys().flow(flow.id),
        flow.to_fields(),
    )
    .await?;
    shown(flow)
}

/// A flow without the values of its secrets.
fn shown(mut flow: Flow) -> Result<Value, ApiError> {
    let env = flow.env_vars.shown();
    flow.env_vars = env
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    written(&flow)
}

pub(super) async fn load_flow(
    call: Call,
    Wrapped { params }: Wrapped<OfContext>,
) -> Result<Value, ApiError> {
    let (context, caller) = call.context(Some(params.context_id)).await?;
    context
        .allow_caller(&caller, Object::Flow, Operation::Read)
        .await?;
    let id = FlowId(params.id);
    let fields = context.node().store();
    let fields = fields
        .hash(context.database(), &context.keys().flow(id))
        .await?;
    if fields.is_empty() {
        return Err(ApiError::new(
            Code::NotFound,
            format!("there is no flow {id}"),
        ));
    }
    let flow = Flow::from_fields(context.id(), id, fields);
    shown(flow.map_err(|error| ApiError::new(Code::Conflict, error.to_string()))?)
}
