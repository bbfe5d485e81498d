//! Methods of queues.

use std::collections::BTreeMap;

use meshwork::view::{QueueSettingsView, QueueView};
use meshwork_broker::QueueDepth;
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::{QueueSetting, Rate};
use meshwork_model::sandbox::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::{parse, parse_some};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post, Put};
    use Scope::{Admin, Viewer};
    vec![
        Method::new(
            ("queue.list", Viewer),
            (Get, "/v1/queues"),
            "List the queues, as the last scan found them",
            list,
        ),
        Method::new(
            ("queue.get", Viewer),
            (Get, "/v1/queues/{queue}"),
            "Read a queue: its jobs by state, and its settings",
            get,
        ),
        Method::new(
            ("queue.pause", Admin),
            (Post, "/v1/queues/{queue}/pause"),
            "Let no job of a queue start",
            pause,
        ),
        Method::new(
            ("queue.resume", Admin),
            (Post, "/v1/queues/{queue}/resume"),
            "End the pause and the drain of a queue",
            resume,
        ),
        Method::new(
            ("queue.drain", Admin),
            (Post, "/v1/queues/{queue}/drain"),
            "Refuse new jobs of a queue; its jobs run",
            drain,
        ),
        Method::new(
            ("queue.purge", Admin),
            (Post, "/v1/queues/{queue}/purge"),
            "Delete the jobs that wait in a queue",
            purge,
        )
        .waits(),
        Method::new(
            ("queue.limit", Admin),
            (Put, "/v1/queues/{queue}/limits"),
            "Change the limits of a queue; those that are not given stay, null removes one",
            limit,
        ),
    ]
}

/// Permissions that calls need in a context.
pub(super) const READ: (Object, Operation) = (Object::Queue, Operation::Read);
const CHANGE: (Object, Operation) = (Object::Queue, Operation::Update);

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "NoParams")]
pub(super) struct NoParams {}

/// A queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueParams")]
struct QueueParams {
    /// The queue: `TYPE`, `TYPE:group:GROUP`, or its whole key.
    queue: String,
    /// Its context; none for a queue outside contexts.
    context: Option<u32>,
}

/// The queues.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueList {
    /// The queues, by name. Lists of other priorities are given if they have jobs or a limit.
    queues: Vec<QueueView>,
    /// Age of the scan that found them, in milliseconds.
    age_ms: u64,
}

/// Queue with its jobs by state.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueState {
    /// List of the queue.
    queue: String,
    /// Number of jobs that wait in it, of all priorities.
    waiting: usize,
    /// Number of running jobs.
    running: usize,
    /// Number of jobs that wait for a slot of their concurrency key.
    set_aside: usize,
    /// Number of jobs that wait for a retry.
    retrying: usize,
    /// Number of delayed jobs that have never run.
    delayed: usize,
    /// Age of the counts of jobs that are in no list of the queue, in milliseconds.
    age_ms: u64,
    /// True if more may run or be delayed: the scan counts 2,000 running and 2,000 delayed jobs of all queues.
    partial: bool,
    /// Greatest number of jobs that may wait in it; null for no limit.
    limit: Option<u64>,
    /// Settings.
    #[serde(flatten)]
    settings: QueueSettingsView,
}

pub(super) fn list_of(call: &Call, name: &str) -> Result<String, ApiError> {
    let keys = call.client.broker().keys();
    let list = keys.parse_work_queue(name);
    list.map_err(|error| ApiError::invalid(format!("queue: {error}")))
}

/// Returns true for an empty list of a priority without a limit: every worker listens to several.
fn is_idle_priority(queue: &QueueView) -> bool {
    queue.queue.contains(":prio:")
        && queue.waiting + queue.running + queue.set_aside == 0
        && queue.limit.is_none()
}

/// The place of queues.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueListParams")]
struct ListParams {
    /// A context, whose keys are scanned by the call; none for the queues outside contexts.
    context: Option<u32>,
}

async fn list(call: Call, params: ListParams) -> Result<Reply<QueueList>, ApiError> {
    let call = call.enter(params.context, READ).await?;
    let (found, age_ms) = match call.entered {
        Some(_) => {
            let queues = call.client.queues().await?;
            (queues.iter().map(QueueView::from).collect(), 0)
        }
        None => {
            let found = call.found().await?;
            (found.queues.clone(), found.age_ms())
        }
    };
    let queues = found.into_iter().filter(|queue| !is_idle_priority(queue));
    let mut queues: Vec<_> = queues.collect();
    // Settings are read now: a queue that was paused after the scan has to be shown as paused.
    let settings = call.client.settings().await?;
    for queue in &mut queues {
        queue.settings = QueueSettingsView::new(&queue.queue, settings.of(&queue.queue));
        queue.limit = settings.limits.queues.get(&queue.queue).copied();
    }
    Ok(Reply::new(&QueueList { queues, age_ms }))
}

async fn get(call: Call, params: QueueParams) -> Result<Reply<QueueState>, ApiError> {
    let call = call.enter(params.context, READ).await?;
    let list = list_of(&call, &params.queue)?;
    state(&call, &list).await
}

/// Counts the jobs of a queue: those of its lists now, the others as the last scan found them, with its age. A call costs the
/// same with any number of jobs; in a context, which no scan covers, it walks the running and delayed jobs.
async fn depth(call: &Call, list: &str) -> Result<(QueueDepth, u64, bool), ApiError> {
    if call.entered.is_some() {
        return Ok((call.client.depth(list).await?, 0, false));
    }
    let found = call.found().await?;
    let queue = JobKeys::without_priority(list);
    let beside = found.depths.get(queue).copied().unwrap_or_default();
    let waiting = call.client.broker().waiting(queue).await?;
    let depth = QueueDepth { waiting, ..beside };
    Ok((depth, found.age_ms(), found.is_partial))
}

async fn state(call: &Call, list: &str) -> Result<Reply<QueueState>, ApiError> {
    let (depth, age_ms, partial) = depth(call, list).await?;
    let settings = call.client.settings().await?;
    let list = JobKeys::without_priority(list);
    Ok(Reply::new(&QueueState {
        queue: list.to_owned(),
        waiting: depth.waiting,
        running: depth.running,
        set_aside: depth.set_aside,
        retrying: depth.retrying,
        delayed: depth.delayed,
        age_ms,
        partial,
        limit: settings.limits.queues.get(list).copied(),
        settings: QueueSettingsView::new(list, settings.of(list)),
    }))
}

async fn pause(call: Call, params: QueueParams) -> Result<Reply<QueueState>, ApiError> {
    let call = call.enter(params.context, CHANGE).await?;
    let list = list_of(&call, &params.queue)?;
    call.client.pause(&list).await?;
    call.noted("pause queue", &list).await?;
    state(&call, &list).await
}

async fn resume(call: Call, params: QueueParams) -> Result<Reply<QueueState>, ApiError> {
    let call = call.enter(params.context, CHANGE).await?;
    let list = list_of(&call, &params.queue)?;
    call.client.resume(&list).await?;
    call.noted("resume queue", &list).await?;
    state(&call, &list).await
}

async fn drain(call: Call, params: QueueParams) -> Result<Reply<QueueState>, ApiError> {
    let call = call.enter(params.context, CHANGE).await?;
    let list = list_of(&call, &params.queue)?;
    call.client.start_drain(&list).await?;
    call.noted("drain queue", &list).await?;
    state(&call, &list).await
}

/// Number of deleted jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct Purged {
    /// List of the queue.
    queue: String,
    /// Number of deleted jobs, at most 10,000.
    deleted: usize,
    /// True if there may be more: repeat the call.
    more: bool,
}

/// Greatest number of jobs that one call of `queue.purge` deletes.
const MAX_PURGED: usize = 10_000;

async fn purge(call: Call, params: QueueParams) -> Result<Reply<Purged>, ApiError> {
    let needs = (Object::Queue, Operation::Delete);
    let call = call.enter(params.context, needs).await?;
    let queue = list_of(&call, &params.queue)?;
    // The entry comes first, so that an interrupted call cannot delete without an entry.
    call.noted("purge queue", &queue).await?;
    let deleted = call.client.purge(&queue, MAX_PURGED, |_| {}).await?;
    let more = deleted == MAX_PURGED;
    Ok(Reply::new(&Purged {
        queue,
        deleted,
        more,
    }))
}

/// New limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueLimitParams")]
struct LimitParams {
    /// The queue.
    queue: String,
    /// Its context; none for a queue outside contexts.
    context: Option<u32>,
    /// Greatest number of jobs that may wait.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    length: Option<Option<u64>>,
    /// Greatest number of jobs that run at once.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    concurrency: Option<Option<u64>>,
    /// Rate at which jobs start, such as `10/1m`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    rate: Option<Option<String>>,
    /// Greatest number of jobs of one key that run at once.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    key_concurrency: Option<Option<u64>>,
    /// Rate at which jobs of one key start.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    key_rate: Option<Option<String>>,
    /// Greatest size of a job, in bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    payload: Option<Option<u64>>,
    /// Profile of the sandbox of its jobs: `open`, `standard` or `strict`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    sandbox: Option<Option<String>>,
    /// Limits of runs, by resource: `memory`, `disk` and `output` in bytes, `cpu` in milliseconds, `processes`, `files`.
    /// Null removes one.
    #[serde(default)]
    run_limits: BTreeMap<String, Option<u64>>,
    /// True if keys take turns.
    fair: Option<bool>,
}

/// Reads a value that may be null, apart from one that is missing.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Returns the changes of the sandbox.
fn sandbox(
    profile: Option<Option<String>>,
    limits: BTreeMap<String, Option<u64>>,
) -> Result<Vec<QueueSetting>, ApiError> {
    let profile = profile.map(|name| parse_some("sandbox", name.as_deref()));
    let profile = profile.transpose()?.map(QueueSetting::Sandbox);
    let limits = limits.into_iter().map(|(name, value)| {
        let known = Limit::ALL.into_iter().find(|limit| limit.as_str() == name);
        let limit = known.ok_or_else(|| {
            let names = Limit::ALL.map(Limit::as_str).join(", ");
            ApiError::invalid(format!("run_limits: `{name}` is none of {names}"))
        })?;
        Ok(QueueSetting::RunLimit(limit, value))
    });
    profile.into_iter().map(Ok).chain(limits).collect()
}

async fn limit(call: Call, params: LimitParams) -> Result<Reply<QueueState>, ApiError> {
    let call = call.enter(params.context, CHANGE).await?;
    let list = list_of(&call, &params.queue)?;
    let rate = |name: &str, given: &Option<Option<String>>| {
        let rate = given.as_ref();
        let parsed = rate.map(|it| it.as_deref().map(|it| parse::<Rate>(name, it)).transpose());
        parsed.transpose()
    };
    let rates = (
        rate("rate", &params.rate)?,
        rate("key_rate", &params.key_rate)?,
    );
    let sandbox = sandbox(params.sandbox, params.run_limits)?;
    let settings: Vec<_> = [
        params.concurrency.map(QueueSetting::Concurrency),
        rates.0.map(QueueSetting::Rate),
        params.key_concurrency.map(QueueSetting::KeyConcurrency),
        rates.1.map(QueueSetting::KeyRate),
        params.payload.map(QueueSetting::Payload),
        params.fair.map(QueueSetting::Fair),
    ]
    .into_iter()
    .flatten()
    .chain(sandbox)
    .collect();
    if !settings.is_empty() {
        call.client.update_queue(&list, &settings).await?;
    }
    if let Some(length) = params.length {
        call.client.set_max_length(Some(&list), length).await?;
    }
    call.noted("limit queue", &list).await?;
    state(&call, &list).await
}
