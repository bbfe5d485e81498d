//! Methods of spread queues: queues over several contexts, their parts.

use meshwork::context::ContextId;
use meshwork::spread::{MAX_PARTS, Spread, SpreadError, SpreadName, SpreadPart};
use meshwork::{Error, JobRequest};
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ContextKeys;
use meshwork_model::name::JobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::parse;
use meshwork_ops::{Paging, With, number};

use super::queue::READ;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Put};
    use Scope::{Admin, Viewer};
    vec![
        Method::new(
            ("queue.parts", Viewer),
            (Get, "/v1/queues/{queue}/parts"),
            "Read the parts of a spread queue, with their jobs",
            parts,
        )
        .in_contexts(),
        Method::new(
            ("queue.spreads", Viewer),
            (Get, "/v1/spread-queues"),
            "List the spread queues that the caller may read, with their parts",
            spreads,
        )
        .in_contexts(),
        Method::new(
            ("queue.spread", Admin),
            (Put, "/v1/queues/{queue}/parts"),
            "Spread a queue over contexts, its parts, or change their number",
            spread,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueuePartsParams")]
struct PartsParams {
    /// The queue: `TYPE`, or `TYPE:group:GROUP`.
    queue: String,
}

/// The parts that a queue gets: give `parts` or `contexts`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueSpreadParams")]
struct SpreadParams {
    /// The queue: `TYPE`, or `TYPE:group:GROUP`.
    queue: String,
    /// Number of parts that get new jobs, 1 to 64. Missing contexts are created.
    parts: Option<u16>,
    /// Contexts of the layout `prefix` as parts. Earlier parts have to come first.
    #[serde(default)]
    contexts: Vec<u32>,
}

/// Part of a spread queue, with its jobs by state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "QueuePart")]
struct Part {
    /// The context of the part.
    context: u32,
    /// False for a part that gets no new jobs.
    active: bool,
    /// Number of jobs that wait.
    waiting: usize,
    /// Number of running jobs.
    running: usize,
    /// Number of jobs that wait for a slot of their concurrency key.
    set_aside: usize,
}

/// Parts of a spread queue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "QueueParts")]
struct Parts {
    /// The queue.
    queue: String,
    /// The parts.
    parts: Vec<Part>,
    /// Number of keys that stay in their old part until it has none of their jobs; the parts can change again at 0.
    moving: usize,
}

impl From<&SpreadPart> for Part {
    fn from(part: &SpreadPart) -> Self {
        Self {
            context: part.context.get(),
            active: part.is_active,
            waiting: part.jobs.waiting,
            running: part.jobs.running,
            set_aside: part.jobs.set_aside,
        }
    }
}

fn name_of(queue: &str) -> Result<SpreadName, ApiError> {
    Ok(parse("queue", queue)?)
}

async fn parts(call: Call, params: PartsParams) -> Result<Reply<Parts>, ApiError> {
    let name = name_of(&params.queue)?;
    call.store.clone().enter_parts(Some(&name), READ).await?;
    shown(&call, &name).await
}

/// A page of spread queues.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueSpreadsParams")]
struct ListParams {}

/// Page of spread queues.
#[derive(Debug, Serialize, JsonSchema)]
struct SpreadQueues {
    /// The queues, by name.
    queues: Vec<Parts>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn spreads(
    call: Call,
    params: With<Paging, ListParams>,
) -> Result<Reply<SpreadQueues>, ApiError> {
    params.beside.limit()?;
    let mut readable = Vec::new();
    for (name, _) in call.node().spreads().await? {
        let entered = call.store.clone().enter_parts(Some(&name), READ).await;
        if entered.is_ok() {
            readable.push(name);
        }
    }
    let (names, next) = params.beside.page(readable)?;
    let mut queues = Vec::with_capacity(names.len());
    for name in &names {
        queues.push(parts_of(&call, name).await?);
    }
    Ok(Reply::new(&SpreadQueues { queues, next }))
}

async fn spread(call: Call, params: SpreadParams) -> Result<Reply<Parts>, ApiError> {
    let name = name_of(&params.queue)?;
    let (node, caller) = (call.node(), call.trusted().await?);
    let contexts = params.contexts.iter().map(|id| number(*id));
    let contexts: Vec<ContextId> = contexts.collect::<Result<_, _>>()?;
    match (params.parts, contexts.is_empty()) {
        (Some(parts), true) => node.spread_queue(&caller, &name, parts.into()).await?,
        (None, false) => node.spread_over(&caller, &name, &contexts).await?,
        _ => {
            let message = format!("give parts, 1 to {MAX_PARTS}, or contexts");
            return Err(ApiError::invalid(message));
        }
    };
    shown(&call, &name).await
}

async fn shown(call: &Call, name: &SpreadName) -> Result<Reply<Parts>, ApiError> {
    Ok(Reply::new(&parts_of(call, name).await?))
}

async fn parts_of(call: &Call, name: &SpreadName) -> Result<Parts, ApiError> {
    let state = call.node().spread_state(name).await?;
    Ok(Parts {
        queue: name.to_string(),
        parts: state.parts.iter().map(Part::from).collect(),
        moving: state.moving,
    })
}

/// Enqueues a job in a part of its queue, for the caller, whose permission is checked in all parts. Returns the call in
/// that part, with the job.
pub(super) async fn enqueue(
    call: Call,
    queue: &str,
    request: JobRequest,
) -> Result<(Call, JobId), ApiError> {
    if call.idempotent_id().is_some() {
        let message = "Idempotency-Key: a job of a spread queue gets its number from its part: give a unique name";
        return Err(ApiError::invalid(message));
    }
    let spread = Spread::open(&call.node(), &call.caller()?, name_of(queue)?).await?;
    let id = spread.enqueue(request).await?;
    let part = ContextKeys::named_in(id.as_str()).map(ContextId::get);
    let call = call.enter(part, (Object::Job, Operation::Create)).await?;
    call.noted("enqueue job", id.as_str()).await?;
    Ok((call, id))
}

impl From<SpreadError> for ApiError {
    fn from(error: SpreadError) -> Self {
        use SpreadError as E;
        let code = match error {
            E::Context(error) => return error.into(),
            E::Job(error) => return Error::into(error),
            E::NotSpread(_) | E::NoPart { .. } => Code::NotFound,
            E::Moving { .. } | E::Busy(_) | E::Apart { .. } => Code::Conflict,
            _ => Code::InvalidParams,
        };
        Self::new(code, error.to_string())
    }
}
