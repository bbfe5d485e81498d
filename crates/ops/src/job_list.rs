//! Lists of jobs: pages by state, from the lists of the store, and a search of all records.

use meshwork::view::JobSummary;
use meshwork::{JobFilter, JobState, PageCursor};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::{State, Status};
use meshwork_model::time;
use serde::{Deserialize, Serialize, Serializer};

use crate::change::{self, Action, ChangedJobs};
use crate::dead::known_reason;
use crate::error::OpError;
use crate::job::READ;
use crate::params::{self, Page, moment, parse, parse_some};
use crate::queue::need_of_filter;
use crate::scope::{Needs, Place, Store};
use crate::with::{Paging, With};

/// Pages of records that one search reads at most.
const MAX_PAGES: usize = 8;

/// State of the jobs of a page.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", rename = "ListedState")]
enum Listed {
    /// The jobs of one queue, in the order of claims.
    Queued,
    /// Running jobs, by the end of their lease.
    Running,
    /// Delayed jobs and those that wait for a retry, the next due first.
    Delayed,
    /// Ended jobs with dead letters, the last ended first.
    Ended,
    /// Dead letters, the last first.
    Dead,
    /// Jobs that wait for other jobs: a search.
    Waiting,
    /// Running jobs with a request to stop: a search.
    Cancelling,
    /// Jobs that ended with a result: a search.
    Finished,
    /// Jobs that ended without a result: a search.
    Failed,
    /// Jobs that a cancel ended: a search.
    Cancelled,
}

impl Listed {
    /// Returns the state of a search; `None` for a list of the store.
    const fn searched(self) -> Option<State> {
        match self {
            Self::Waiting => Some(State::Waiting),
            Self::Cancelling => Some(State::Cancelling),
            Self::Finished => Some(State::Finished),
            Self::Failed => Some(State::Failed),
            Self::Cancelled => Some(State::Cancelled),
            Self::Queued | Self::Running | Self::Delayed | Self::Ended | Self::Dead => None,
        }
    }
}

/// Reads a state, or the status of a record.
fn status(text: &str) -> Result<JobState, OpError> {
    let recorded = Status::ALL.into_iter().find(|it| it.as_str() == text);
    match recorded {
        Some(status) => Ok(JobState::Recorded(status)),
        None => parse("status", text),
    }
}

/// A page of jobs.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "JobListParams")]
pub struct Filters {
    /// Only jobs in this state. `queued` (of one queue), `running`, `delayed`, `ended` and `dead` are lists of the store, with which only `queue` can be given; the others search.
    state: Option<Listed>,
    /// Only jobs of this type.
    #[serde(rename = "type")]
    script_type: Option<String>,
    /// Only jobs of this group.
    group: Option<String>,
    /// Only jobs with this routing key; `default`: jobs without a group.
    route: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Search: only jobs in this state: `queued`, `delayed`, `waiting`, `running`, `cancelling`, `finished`, `failed`, `cancelled` or `stale`; or with this status of the record.
    status: Option<String>,
    /// Only jobs of this concurrency key.
    key: Option<String>,
    /// Only jobs with this label.
    tag: Option<String>,
    /// Only jobs of this batch.
    batch: Option<String>,
    /// Only jobs that this one enqueued.
    parent: Option<String>,
    /// Only dead letters of this kind of failure.
    reason: Option<String>,
    /// Only jobs whose error contains this text.
    error: Option<String>,
    /// Only jobs that contain this text in their id, script, input, result or error.
    text: Option<String>,
    /// Only jobs that were created at this time or later (RFC 3339).
    since: Option<String>,
    /// Only jobs that were created before this time (RFC 3339).
    until: Option<String>,
}

/// Job of a page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ListedJob<'a> {
    /// Time that orders a page by state (RFC 3339): the due time of a delayed job, the end of a running job's lease, the end of an ended job. Null for queued jobs, and in a search.
    at: Option<String>,
    /// The job.
    #[serde(flatten)]
    job: JobSummary<'a>,
}

/// Page of jobs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobPage {
    /// The jobs.
    #[serde(serialize_with = "listed")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ListedJob<'static>>"))]
    jobs: Vec<(Found, Store)>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

fn listed<S: Serializer>(jobs: &[(Found, Store)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(jobs.iter().map(|(found, store)| {
        ListedJob {
            at: found.at_ms.map(time::iso),
            job: JobSummary::new(&found.job, found.state, store.context_number())
                .with_next_run(found.next_run_ms),
        }
    }))
}

/// Filters of jobs, with their place and a page.
pub type ListParams = With<Place, With<Paging, Filters>>;

impl Filters {
    fn filter(&self, store: &Store) -> Result<JobFilter, OpError> {
        let queue = self.queue.as_deref();
        let queue = queue.map(|name| store.queue(name)).transpose()?;
        let at = |name: &str, text: Option<&str>| text.map(|it| moment(name, it)).transpose();
        Ok(JobFilter {
            script_type: parse_some("type", self.script_type.as_deref())?,
            group: parse_some("group", self.group.as_deref())?,
            route: parse_some("route", self.route.as_deref())?,
            queue,
            status: match self.state.and_then(Listed::searched) {
                Some(state) => Some(JobState::Is(state)),
                None => self.status.as_deref().map(status).transpose()?,
            },
            key: self.key.clone(),
            tags: parse_some("tag", self.tag.as_deref())?
                .into_iter()
                .collect(),
            batch: parse_some("batch", self.batch.as_deref())?,
            parent: self.parent.clone().map(JobId::foreign),
            reason: self.reason.as_deref().map(known_reason).transpose()?,
            error_contains: self.error.clone(),
            text: self.text.clone(),
            since_ms: at("since", self.since.as_deref())?,
            until_ms: at("until", self.until.as_deref())?,
        })
    }

    /// Returns the filters that only a search has.
    fn searches(&self) -> impl Iterator<Item = &'static str> {
        let filters = [
            ("type", &self.script_type),
            ("group", &self.group),
            ("route", &self.route),
            ("status", &self.status),
            ("key", &self.key),
            ("tag", &self.tag),
            ("batch", &self.batch),
            ("parent", &self.parent),
            ("reason", &self.reason),
            ("error", &self.error),
            ("text", &self.text),
            ("since", &self.since),
            ("until", &self.until),
        ];
        let given = filters.into_iter().filter(|(_, given)| given.is_some());
        given.map(|(name, _)| name)
    }

    /// Refuses a filter that only a search has with a list of the store, and two states.
    fn check_state(&self) -> Result<(), OpError> {
        let is_list = self.state.is_some_and(|state| state.searched().is_none());
        let mut refused = self.searches().filter(|name| is_list || *name == "status");
        match refused.next().filter(|_| self.state.is_some()) {
            None => Ok(()),
            Some(name) => Err(OpError::invalid(format!(
                "{name} cannot be given with state: search with status instead of state"
            ))),
        }
    }

    /// Refuses a call that names all jobs.
    fn check_filter(&self) -> Result<(), OpError> {
        let listed = self.state.is_some() || self.queue.is_some();
        match listed || self.searches().next().is_some() {
            true => Ok(()),
            false => Err(OpError::invalid(
                "give a filter, such as type, queue or status; until with the present time matches all jobs",
            )),
        }
    }
}

/// Lists jobs: with `state` in order, from the lists of the store; else a search of all records.
///
/// # Errors
/// A parameter is wrong, the caller may not read them, or a call to the server fails.
pub async fn list(store: Store, params: ListParams) -> Result<JobPage, OpError> {
    let (jobs, next) = read(store, &params, READ).await?;
    Ok(JobPage { jobs, next })
}

/// Cancels the open jobs of a page.
///
/// # Errors
/// As for [`list`], or no filter is given.
pub async fn cancel_many(store: Store, params: ListParams) -> Result<ChangedJobs, OpError> {
    let action = Action::Cancel { force: false };
    let (mut found, next) = read(store, &params, action.needs()).await?;
    params.check_filter()?;
    found.retain(|(found, _)| found.job.is_cancellable());
    let found = found.into_iter().map(|(found, store)| (found.job, store));
    change::page((found.collect(), next), action).await
}

/// A job that was found, and the time that orders it.
#[derive(Debug)]
struct Found {
    at_ms: Option<u64>,
    job: Job,
    state: Option<State>,
    next_run_ms: Option<u64>,
}

/// Reads a page of jobs for a caller with this permission, each with the store of its place.
async fn read(
    store: Store,
    params: &ListParams,
    needs: Needs,
) -> Result<Page<(Found, Store)>, OpError> {
    let With {
        beside: paging,
        own,
    } = &params.own;
    let limit = paging.limit()?;
    own.check_state()?;
    let queue = own.queue.as_deref();
    let placed = store.enter_all(params.beside, queue, needs).await?;
    let read = async |store: Store, cursor: Option<String>, limit| {
        let is_first = cursor.is_none();
        let list = own.state.filter(|state| state.searched().is_none());
        let (found, next) = match list {
            Some(state) => own.by_state(&store, state, cursor, limit).await?,
            None => own.search(&store, cursor, limit).await?,
        };
        if is_first && !params.beside.spread {
            need_of_filter(&store, queue, !found.is_empty()).await?;
        }
        let (times, jobs): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let states = store.client.states_with_times(&jobs).await?;
        let found = times.into_iter().zip(jobs).zip(states);
        let found = found.map(|((at_ms, job), (state, next_run_ms))| Found {
            at_ms,
            job,
            state,
            next_run_ms,
        });
        let found = found.map(|found| (found, store.clone()));
        Ok::<_, OpError>((found.collect(), next))
    };
    placed.page(paging.cursor.as_deref(), limit, read).await
}

impl Filters {
    async fn by_state(
        &self,
        store: &Store,
        state: Listed,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<Page<(Option<u64>, Job)>, OpError> {
        let queue = self.queue.as_deref();
        let queue = queue.map(|name| store.queue(name)).transpose()?;
        let cursor: Option<PageCursor> = parse_some("cursor", cursor.as_deref())?;
        let (client, queue, cursor) = (&store.client, queue.as_deref(), cursor.as_ref());
        let page = match (state, queue) {
            (Listed::Queued, None) => {
                return Err(OpError::invalid(
                    "queue: give one, since each queue has lists of its own; queue.list lists them",
                ));
            }
            (Listed::Queued, Some(queue)) => client.queued_page(queue, cursor, limit).await?,
            (Listed::Running, queue) => client.running_page(queue, cursor, limit).await?,
            (Listed::Delayed, queue) => client.delayed_page(queue, cursor, limit).await?,
            (Listed::Dead, queue) => client.dead_page(queue, cursor, limit).await?,
            (_, queue) => client.ended_page(queue, cursor, limit).await?,
        };
        let jobs = page.jobs.into_iter().map(|paged| (paged.at_ms, paged.job));
        let next = page.next.as_ref().map(ToString::to_string);
        Ok((jobs.collect(), next))
    }

    async fn search(
        &self,
        store: &Store,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<Page<(Option<u64>, Job)>, OpError> {
        let filter = self.filter(store)?;
        let step = async |from: u64| {
            let page = store.client.find(&filter, from).await?;
            let found = page.jobs.into_iter().map(|job| (None, job));
            Ok((found.collect(), page.next))
        };
        params::scanned(cursor.as_deref(), limit, MAX_PAGES, step).await
    }
}
