//! One job: its record, and changes of it.

use std::time::Duration;

use meshwork::context::{Object, Operation};
use meshwork::view::JobView;
use meshwork::{Client, Error, JobChange, JobRequest};
use meshwork_model::job::Job;
use meshwork_model::job::limits::{MAX_DELAY_MS, MAX_TIMEOUT};
use meshwork_model::name::JobId;
use meshwork_model::param::Span;
use meshwork_model::spec::PriorityWord;
use meshwork_model::state::State;
use serde::{Deserialize, Serialize, Serializer};

use crate::change::{Action, Change, Outcome};
use crate::error::OpError;
use crate::scope::{Needs, Store};

/// Permission that reads need in a context.
pub const READ: Needs = (Object::Job, Operation::Read);

/// The id of a job.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "JobParams")]
pub struct IdParams {
    /// Id of the job; in a context its number, as `2001` or `12:2001`, or its key.
    id: String,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

impl IdParams {
    /// Enters the context of the job, and reads its id.
    ///
    /// # Errors
    /// The caller may not work there, or the text names no job of the context.
    pub async fn open(self, store: Store, needs: Needs) -> Result<(Store, JobId), OpError> {
        store.enter_job(self.context, &self.id, needs).await
    }
}

/// A job, as [`JobView`] writes it.
#[derive(Debug)]
pub struct JobAnswer {
    job: Job,
    /// None for a status of another client.
    state: Option<State>,
    context: Option<u32>,
}

impl JobAnswer {
    /// Returns a job that has ended.
    #[must_use]
    pub fn ended(job: Job, store: &Store) -> Self {
        Self {
            state: job.state(false),
            context: store.context_number(),
            job,
        }
    }

    /// Returns a job in the state that it has now.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn now(job: Job, store: &Store) -> Result<Self, OpError> {
        let states = store.client.states(std::slice::from_ref(&job)).await?;
        Ok(Self {
            state: states.into_iter().next().flatten(),
            context: store.context_number(),
            job,
        })
    }
}

impl Serialize for JobAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JobView::new(&self.job, self.state, self.context).serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for JobAnswer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        JobView::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        JobView::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        JobView::json_schema(generator)
    }
}

/// Reads a job.
///
/// # Errors
/// There is no such job, or the caller may not read it.
pub async fn get(store: Store, params: IdParams) -> Result<JobAnswer, OpError> {
    let (store, id) = params.open(store, READ).await?;
    JobAnswer::now(store.client.status(&id).await?, &store).await
}

/// Shortest beginning of an id, in characters: a shorter one is a typo.
const SHORTEST: usize = 4;
/// Greatest number of jobs that are found by a beginning.
const MOST_FOUND: usize = 10;

/// Ids of jobs.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobIds {
    /// The ids.
    pub ids: Vec<String>,
}

/// Finds the jobs whose ids begin with the given one, at most 10; only the job of that id if it exists.
///
/// # Errors
/// The caller may not read them.
pub async fn ids(store: Store, params: IdParams) -> Result<JobIds, OpError> {
    let (store, id) = params.open(store, READ).await?;
    let known = store.client.broker().statuses(std::slice::from_ref(&id));
    let ids = match known.await.map_err(Error::from)?.first() {
        Some(Some(_)) => vec![id],
        _ => beginning(&store.client, &id).await?,
    };
    let ids = ids.iter().map(ToString::to_string).collect();
    Ok(JobIds { ids })
}

/// Returns the ids that begin with the text of another one, which a table may have cut with `…`. A beginning has at least
/// four characters.
///
/// # Errors
/// A call to the server fails.
pub async fn beginning(client: &Client, id: &JobId) -> Result<Vec<JobId>, Error> {
    let text = id.as_str().trim_end_matches('…');
    match text.chars().count() < SHORTEST {
        true => Ok(Vec::new()),
        false => Ok(client.broker().ids_beginning(text, MOST_FOUND).await?),
    }
}

/// Greatest number of numbers that are tried for a job: plain clients may have taken some.
const TRIES: usize = 16;

/// Enqueues a job, under the id that the caller gives, if any. In a context the entry in the audit trail comes first, so that
/// an interrupted call has one.
///
/// # Errors
/// The trail cannot be written, and nothing was changed; or the job is refused.
pub async fn enqueue(
    store: &Store,
    request: JobRequest,
    named: Option<JobId>,
) -> Result<JobId, OpError> {
    if store.entered.is_none() {
        return Ok(store.client.enqueue(request).await?);
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let id = match &named {
            Some(id) => id.clone(),
            None => store.client.next_job_id().await?,
        };
        store.noted("enqueue job", id.as_str()).await?;
        match store.client.enqueue(request.clone().id(id)).await {
            Err(Error::JobExists { .. }) if named.is_none() && tries < TRIES => {}
            answer => return Ok(answer?),
        }
    }
}

/// The job and how to cancel it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "JobCancelParams")]
pub struct CancelParams {
    /// Id of the job.
    id: String,
    /// True to end the record of a running job at once, although its worker may go on.
    #[serde(default)]
    force: bool,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

/// Result of a change.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    /// Id of the object.
    id: String,
    /// State after the call: `cancelled`, `cancelling`, `ended`, `queued`, `deleted` and others.
    result: &'static str,
}

impl Changed {
    /// Returns true if a worker still has to obey.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.result == Outcome::Cancelling.word()
    }
}

/// Cancels a job.
///
/// # Errors
/// There is no such job, the caller may not cancel it, or a call to the server fails.
pub async fn cancel(store: Store, params: CancelParams) -> Result<Changed, OpError> {
    let action = Action::Cancel {
        force: params.force,
    };
    let CancelParams { id, context, .. } = params;
    change(store, IdParams { id, context }, action).await
}

/// New values of a job that waits.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "JobSetParams")]
pub struct SetParams {
    /// Id of the job.
    id: String,
    /// `high`, `normal` or `low`; or 0, 1 or 2.
    priority: Option<PriorityWord>,
    /// Time from now until the job may start, also in place of a retry's time; 0: at once. At most ten years.
    delay: Option<Span>,
    /// Longest time of one run, rounded up to whole seconds: at most 7 days.
    timeout: Option<Span>,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

/// Changes the priority, the delay or the timeout of a job that waits.
///
/// # Errors
/// As for [`change`], or no value is given, or one is too great.
pub async fn set(store: Store, params: SetParams) -> Result<Changed, OpError> {
    let SetParams { id, context, .. } = params;
    let needs = Action::Set(JobChange::default()).needs();
    // The permission is checked before the values.
    let (store, id) = IdParams { id, context }.open(store, needs).await?;
    if params.priority.is_none() && params.delay.is_none() && params.timeout.is_none() {
        return Err(OpError::invalid("give priority, delay or timeout"));
    }
    let seconds = 1..=MAX_TIMEOUT;
    if params
        .timeout
        .is_some_and(|it| !seconds.contains(&it.seconds()))
    {
        let why = format!("timeout: give 1 to {MAX_TIMEOUT} seconds");
        return Err(OpError::invalid(why));
    }
    if params.delay.is_some_and(|it| it.millis() > MAX_DELAY_MS) {
        let why = format!("delay: give 0 to {} seconds", MAX_DELAY_MS / 1000);
        return Err(OpError::invalid(why));
    }
    let action = Action::Set(JobChange {
        priority: params.priority.map(|it| it.0),
        delay: params.delay.map(|it| it.0),
        timeout: params.timeout.map(|it| Duration::from_secs(it.seconds())),
    });
    changed(&store, id, action).await
}

/// Changes a job or a dead letter.
///
/// # Errors
/// There is none, the caller may not change it, its state does not allow it, or a call to the server fails.
pub async fn change(store: Store, params: IdParams, action: Action) -> Result<Changed, OpError> {
    let (store, id) = params.open(store, action.needs()).await?;
    changed(&store, id, action).await
}

async fn changed(store: &Store, id: JobId, action: Action) -> Result<Changed, OpError> {
    let change = Change::begin(store, action, std::slice::from_ref(&id)).await?;
    let outcome = change.by_id(&id).await?;
    match action.refusal(outcome) {
        Some(why) => Err(OpError::Refused { id, why }),
        None => Ok(Changed {
            id: id.to_string(),
            result: outcome.word(),
        }),
    }
}
