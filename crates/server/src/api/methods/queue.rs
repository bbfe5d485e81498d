//! Methods of queues.

use meshwork::view::{QueueSettingsView, QueueView};
use meshwork_broker::QueueDepth;
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::hero::JobKeys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params;
use meshwork_ops::queue::QueueState;
use meshwork_ops::{Each, Paging, Place, With, queue};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post};
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
    ]
}

/// Permissions that calls need in a context.
pub(super) const READ: (Object, Operation) = (Object::Queue, Operation::Read);
pub(super) const CHANGE: (Object, Operation) = (Object::Queue, Operation::Update);

/// Parameters with the place of their queue.
pub(super) type InPlace<T> = With<Place, T>;

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
}

/// A queue to be changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueChangeParams")]
struct ChangeParams {
    /// The queue: `TYPE`, `TYPE:group:GROUP`, or its whole key.
    queue: String,
    /// True to change it although it does not exist yet: no job was enqueued to it, no worker has listened to it, and it has
    /// no settings.
    #[serde(default)]
    create: bool,
}

/// Page of queues.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueList {
    /// The queues, by part and name. Lists of other priorities are given if they have jobs or a limit.
    queues: Vec<ListedQueue>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
    /// Age of the scan that found them, in milliseconds.
    age_ms: u64,
}

/// Queue of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedQueue {
    /// Number of its context, the part of a spread queue; null outside contexts.
    context: Option<u32>,
    /// The queue.
    #[serde(flatten)]
    queue: QueueView,
}

/// The place of queues. The keys of contexts are scanned by the call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueListParams")]
struct ListParams {}

async fn list(
    call: Call,
    params: InPlace<With<Paging, ListParams>>,
) -> Result<Reply<QueueList>, ApiError> {
    let (place, paging) = (params.beside, params.own.beside);
    let limit = paging.limit()?;
    let calls = call.clone().enter_all(place, None, READ).await?;
    let age_ms = match place.is_outside() {
        true => call.found().await?.age_ms(),
        false => 0,
    };
    let read = async |call: Call, cursor: Option<String>, limit| {
        Ok::<_, ApiError>(params::page(listed(call).await?, cursor.as_deref(), limit)?)
    };
    let page = calls.page(paging.cursor.as_deref(), limit, read);
    let (queues, next) = page.await?;
    Ok(Reply::new(&QueueList {
        queues,
        next,
        age_ms,
    }))
}

async fn listed(call: Call) -> Result<Vec<ListedQueue>, ApiError> {
    let found = match call.entered {
        Some(_) => {
            let queues = call.client.queues().await?;
            queues.iter().map(QueueView::from).collect()
        }
        None => call.found().await?.queues.clone(),
    };
    let context = call.context_number();
    // Settings are read now: a queue that was paused after the scan has to be shown as paused.
    let broker = call.client.broker();
    let settings = broker.or_nothing(broker.settings().await);
    let settings = settings.map_err(meshwork::Error::from)?;
    let queues = queue::listed(found, &settings).into_iter();
    Ok(queues.map(|queue| ListedQueue { context, queue }).collect())
}

async fn get(call: Call, params: InPlace<QueueParams>) -> Result<Reply<QueueState>, ApiError> {
    // The parts of a spread queue exist, although one may be unused.
    let is_part = params.beside.spread;
    let read = async |call: Call, list: String| {
        let state = state(&call, &list).await?;
        if state.is_bare() && !is_part {
            queue::need_to_read(&call, &list).await?;
        }
        Ok(state)
    };
    in_place(call, (params.beside, params.own.queue), READ, read).await
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

async fn state(call: &Call, list: &str) -> Result<QueueState, ApiError> {
    let (depth, age_ms, partial) = depth(call, list).await?;
    let settings = call.client.settings().await?;
    let list = JobKeys::without_priority(list);
    Ok(QueueState {
        is_set: settings.of(list).is_some(),
        queue: list.to_owned(),
        context: call.context_number(),
        waiting: depth.waiting,
        running: depth.running,
        set_aside: depth.set_aside,
        retrying: depth.retrying,
        delayed: depth.delayed,
        age_ms,
        partial,
        limit: settings.limits.queues.get(list).copied(),
        settings: QueueSettingsView::new(list, settings.of(list)),
        limits_per_part: false,
        parts: None,
    })
}

/// Changes a queue, or all parts of a spread queue, and reads its state. The entry in the audit trail comes first, so that an
/// interrupted change has one.
pub(super) async fn changed<F>(
    call: Call,
    (place, queue): (Place, String),
    needs: (Object, Operation),
    change: impl Fn(Call, String) -> F,
) -> Result<Reply<QueueState>, ApiError>
where
    F: Future<Output = Result<(), ApiError>>,
{
    let change = async |call: Call, list: String| {
        change(call.clone(), list.clone()).await?;
        state(&call, &list).await
    };
    in_place(call, (place, queue), needs, change).await
}

/// Reads a queue, or all parts of a spread queue.
async fn in_place<F>(
    call: Call,
    (place, queue): (Place, String),
    needs: (Object, Operation),
    read: impl Fn(Call, String) -> F,
) -> Result<Reply<QueueState>, ApiError>
where
    F: Future<Output = Result<QueueState, ApiError>>,
{
    let calls = call.enter_all(place, Some(&queue), needs).await?;
    let states = calls.each(async |call: Call| {
        let list = call.queue(&queue)?;
        read(call, list).await
    });
    let state = match states.await? {
        Each::One(state) => state,
        Each::Parts(parts) => QueueState::of_parts(queue, parts),
    };
    Ok(Reply::new(&state))
}

async fn pause(call: Call, params: InPlace<ChangeParams>) -> Result<Reply<QueueState>, ApiError> {
    let InPlace { beside: place, own } = params;
    let create = own.create || place.spread;
    let pause = async |call: Call, list: String| {
        queue::refuse_unknown(&call.client, &list, create).await?;
        call.noted("pause queue", &list).await?;
        Ok(call.client.pause(&list).await?)
    };
    changed(call, (place, own.queue), CHANGE, pause).await
}

async fn resume(call: Call, params: InPlace<QueueParams>) -> Result<Reply<QueueState>, ApiError> {
    let is_part = params.beside.spread;
    let resume = async |call: Call, list: String| {
        if !is_part {
            queue::need(&call.client, &list).await?;
        }
        call.noted("resume queue", &list).await?;
        Ok(call.client.resume(&list).await?)
    };
    changed(call, (params.beside, params.own.queue), CHANGE, resume).await
}

async fn drain(call: Call, params: InPlace<ChangeParams>) -> Result<Reply<QueueState>, ApiError> {
    let InPlace { beside: place, own } = params;
    let create = own.create || place.spread;
    let drain = async |call: Call, list: String| {
        queue::refuse_unknown(&call.client, &list, create).await?;
        call.noted("drain queue", &list).await?;
        Ok(call.client.start_drain(&list).await?)
    };
    changed(call, (place, own.queue), CHANGE, drain).await
}

/// Number of deleted jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct Purged {
    /// List of the queue; name of a spread queue.
    queue: String,
    /// Number of deleted jobs, at most 10,000; in each part of a spread queue.
    deleted: usize,
    /// True if there may be more: repeat the call.
    more: bool,
}

/// Greatest number of jobs that one call of `queue.purge` deletes in one place.
const MAX_PURGED: usize = 10_000;

async fn purge(call: Call, params: InPlace<QueueParams>) -> Result<Reply<Purged>, ApiError> {
    let needs = (Object::Queue, Operation::Delete);
    let queue = params.own.queue;
    let spread = params.beside.spread;
    let calls = call.enter_all(params.beside, Some(&queue), needs).await?;
    let purged = calls.each(async |call: Call| {
        let queue = call.queue(&queue)?;
        if !spread {
            queue::need(&call.client, &queue).await?;
        }
        call.noted("purge queue", &queue).await?;
        let deleted = call.client.purge(&queue, MAX_PURGED, |_| {}).await?;
        let more = deleted == MAX_PURGED;
        Ok::<_, ApiError>(Purged {
            queue,
            deleted,
            more,
        })
    });
    let purged = match purged.await? {
        Each::One(purged) => purged,
        Each::Parts(parts) => Purged {
            queue,
            deleted: parts.iter().map(|part| part.deleted).sum(),
            more: parts.iter().any(|part| part.more),
        },
    };
    Ok(Reply::new(&purged))
}
