//! Changes of jobs and dead letters: one list of them, one list of results, and the entry in the audit trail that comes
//! before the first change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use futures_util::{Stream, StreamExt, TryStreamExt};
use meshwork::context::{Object, Operation};
use meshwork::{Cancelled, Client, Deleted, Error, JobChange, Retried, RunNow, SetJob};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use serde::Serialize;

use crate::error::OpError;
use crate::params::Page;
use crate::scope::{Needs, Store};

/// Greatest number of jobs that are changed at once.
const AT_ONCE: usize = 64;

/// A change of a job.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// Cancels an open job; with `force` also one that runs, without its worker.
    Cancel {
        /// True to end the record of a running job at once.
        force: bool,
    },
    /// Runs an ended job again.
    Retry,
    /// Lets a delayed job run now.
    RunNow,
    /// Changes values of a job that waits.
    Set(JobChange),
    /// Deletes a job that does not run.
    Delete,
    /// Runs the job of a dead letter again.
    RetryLetter,
    /// Deletes a dead letter with its job.
    DeleteLetter,
}

/// Result of a change of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The job has ended by the cancel.
    Cancelled,
    /// Its worker has a request to stop it.
    Cancelling,
    /// It has ended.
    Ended,
    /// It is in its queue.
    Queued,
    /// It waits for other jobs.
    Waiting,
    /// It waits for no time.
    Ready,
    /// It has the values.
    Set,
    /// A worker has taken it.
    Taken,
    /// Its queue is too long to be searched.
    Long,
    /// It is gone.
    Deleted,
    /// It has not ended.
    Unfinished,
    /// It runs.
    Running,
    /// It belongs to a flow.
    OfFlow,
    /// It has no record, or none that names its queue.
    Missing,
    /// It would be changed, but for a dry run.
    Meant,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Cancelled,
        Self::Cancelling,
        Self::Ended,
        Self::Queued,
        Self::Waiting,
        Self::Ready,
        Self::Set,
        Self::Taken,
        Self::Long,
        Self::Deleted,
        Self::Unfinished,
        Self::Running,
        Self::OfFlow,
        Self::Missing,
        Self::Meant,
    ];

    /// The word of a result.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Cancelling => "cancelling",
            Self::Ended => "ended",
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Set => "set",
            Self::Taken => "taken",
            Self::Long => "long",
            Self::Deleted => "deleted",
            Self::Unfinished => "unfinished",
            Self::Running => "running",
            Self::OfFlow => "of_flow",
            Self::Missing => "missing",
            Self::Meant => "meant",
        }
    }
}

impl From<Cancelled> for Outcome {
    fn from(cancelled: Cancelled) -> Self {
        match cancelled {
            Cancelled::Cancelled => Self::Cancelled,
            Cancelled::Stopping => Self::Cancelling,
            Cancelled::Ended => Self::Ended,
            Cancelled::Missing => Self::Missing,
        }
    }
}

impl From<Retried> for Outcome {
    fn from(retried: Retried) -> Self {
        match retried {
            Retried::Queued => Self::Queued,
            Retried::Unfinished => Self::Unfinished,
            Retried::OfFlow => Self::OfFlow,
            Retried::Missing => Self::Missing,
        }
    }
}

impl From<Deleted> for Outcome {
    fn from(deleted: Deleted) -> Self {
        match deleted {
            Deleted::Deleted => Self::Deleted,
            Deleted::Running => Self::Running,
            Deleted::OfFlow => Self::OfFlow,
            Deleted::Missing => Self::Missing,
        }
    }
}

impl From<RunNow> for Outcome {
    fn from(done: RunNow) -> Self {
        match done {
            RunNow::Queued => Self::Queued,
            RunNow::Waiting => Self::Waiting,
            RunNow::Ready => Self::Ready,
            RunNow::Running => Self::Running,
            RunNow::Ended => Self::Ended,
            RunNow::Missing => Self::Missing,
        }
    }
}

impl From<SetJob> for Outcome {
    fn from(set: SetJob) -> Self {
        match set {
            SetJob::Set => Self::Set,
            SetJob::Taken => Self::Taken,
            SetJob::Long => Self::Long,
            SetJob::Running => Self::Running,
            SetJob::Ended => Self::Ended,
            SetJob::Missing => Self::Missing,
        }
    }
}

impl Action {
    /// The permission that it needs in a context.
    #[must_use]
    pub const fn needs(self) -> Needs {
        match self {
            Self::Delete | Self::DeleteLetter => (Object::Job, Operation::Delete),
            _ => (Object::Job, Operation::Cancel),
        }
    }

    /// Words of the audit trail.
    const fn words(self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel jobs",
            Self::Retry | Self::RetryLetter => "retry jobs",
            Self::RunNow => "run jobs now",
            Self::Set(_) => "change jobs",
            Self::Delete | Self::DeleteLetter => "delete jobs",
        }
    }

    /// Returns why a job was not changed; `None` if it has the requested state.
    #[must_use]
    pub const fn refusal(self, outcome: Outcome) -> Option<&'static str> {
        use Outcome as O;
        Some(match (self, outcome) {
            (Self::Cancel { .. }, _) => return None,
            (Self::RetryLetter, O::Unfinished) => "is no dead letter any more: it was queued again",
            (Self::DeleteLetter, O::Running) => {
                "is no dead letter any more: it was queued again, and runs"
            }
            (Self::RetryLetter, O::Missing) => {
                "has no record any more, so its queue is unknown: enqueue the job again"
            }
            (Self::Delete, O::Running) => "runs: cancel it first",
            (Self::Delete | Self::DeleteLetter, O::OfFlow) => {
                "belongs to a flow: delete the flow, as with `meshwork flow delete`"
            }
            (_, O::OfFlow) => {
                "belongs to a flow: retry the flow, as with `meshwork flow retry FLOW --from JOB`"
            }
            (_, O::Unfinished) => "has not ended: wait for it, or cancel it first",
            (_, O::Missing) => "does not name its queue: enqueue the job again",
            (_, O::Ready) => {
                "does not wait for a time: `job show` and `job.get` show its prerequisites and its queue"
            }
            (_, O::Taken) => "is about to run: a worker has taken it",
            (_, O::Long) => {
                "is in a queue of more than 10,000 jobs, which is not searched: cancel it, and enqueue another one"
            }
            (_, O::Running) => "runs already",
            (_, O::Ended) => "has ended: retry it to run it once more",
            _ => return None,
        })
    }

    /// Finds the job of an id.
    async fn find(self, client: &Client, id: &JobId) -> Result<Job, Error> {
        match self {
            Self::RetryLetter | Self::DeleteLetter => Ok(client.dead_letter(id).await?.job),
            _ => client.summary(id).await,
        }
    }

    async fn apply(self, client: &Client, job: &Job) -> Result<Outcome, Error> {
        let broker = client.broker();
        let outcome = match self {
            Self::Cancel { force } => client.cancel_found(job, force).await?.into(),
            Self::Retry | Self::RetryLetter => broker.retry(job).await?.into(),
            Self::RunNow => broker.run_now(job).await?.into(),
            Self::Set(change) => broker.set_job(job, &change).await?.into(),
            Self::Delete => broker.delete(job).await?.into(),
            Self::DeleteLetter => match client.delete_dead_letter(job).await? {
                // The letter was all that was left of it.
                Deleted::Missing => Outcome::Deleted,
                deleted => deleted.into(),
            },
        };
        self.known(outcome, || job.job_id())
    }

    /// Turns a job without a record into an error, unless its letter names it.
    fn known(self, outcome: Outcome, id: impl Fn() -> JobId) -> Result<Outcome, Error> {
        match (self, outcome) {
            (Self::Retry | Self::RetryLetter, _) => Ok(outcome),
            (_, Outcome::Missing) => Err(Error::JobNotFound { id: id() }),
            _ => Ok(outcome),
        }
    }
}

/// A change of jobs of a place, whose audit trail has an entry of it.
#[derive(Debug, Clone)]
pub struct Change {
    store: Store,
    action: Action,
}

impl Change {
    /// Writes the entry into the audit trail. It comes first, so that an interrupted change has one. `ids`: the jobs, or none
    /// for those that a filter finds.
    ///
    /// # Errors
    /// The trail cannot be written. Nothing was changed.
    pub async fn begin(store: &Store, action: Action, ids: &[JobId]) -> Result<Self, OpError> {
        let ids: Vec<_> = ids.iter().map(JobId::as_str).collect();
        store.noted(action.words(), &ids.join(" ")).await?;
        let store = store.clone();
        Ok(Self { store, action })
    }

    /// Changes the job of an id.
    ///
    /// # Errors
    /// There is no such job, or a call to the server fails.
    pub async fn by_id(&self, id: &JobId) -> Result<Outcome, OpError> {
        let client = &self.store.client;
        if let Action::Cancel { force: false } = self.action {
            let outcome = client.cancel(id).await?.into();
            return Ok(self.action.known(outcome, || id.clone())?);
        }
        let job = self.action.find(client, id).await?;
        self.of(&job).await
    }

    /// Changes a job that was found.
    ///
    /// # Errors
    /// It is gone, or a call to the server fails.
    pub async fn of(&self, job: &Job) -> Result<Outcome, OpError> {
        Ok(self.action.apply(&self.store.client, job).await?)
    }

    /// Changes jobs that were found, several at once. Returns the results in order.
    pub fn each<'a>(
        &'a self,
        jobs: impl IntoIterator<Item = &'a Job>,
    ) -> impl Stream<Item = (&'a Job, Result<Outcome, OpError>)> {
        let changes = jobs
            .into_iter()
            .map(move |job| async move { (job, self.of(job).await) });
        futures_util::stream::iter(changes).buffered(AT_ONCE)
    }
}

/// Jobs that an operation changed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedJobs {
    /// The jobs of the page; without those that had ended before a cancel.
    jobs: Vec<ChangedJob>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

/// Result for one job.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ChangedJob {
    /// Id of the job.
    id: String,
    /// Number of its context, a part with `spread`; null outside contexts.
    context: Option<u32>,
    /// State after the change: `cancelled`, `cancelling`, `ended`, `queued` or `deleted`; or why the job was not changed:
    /// `unfinished`, `running`, `of_flow` or `missing`.
    result: &'static str,
}

/// Changes the jobs of a page, each in its place. The audit trail of each context has an entry first.
///
/// # Errors
/// A trail cannot be written, and nothing was changed; or a call to the server fails.
pub async fn page(
    (jobs, next): Page<(Job, Store)>,
    action: Action,
) -> Result<ChangedJobs, OpError> {
    let mut changes = BTreeMap::new();
    for (_, store) in &jobs {
        if let Entry::Vacant(first) = changes.entry(store.context_number()) {
            first.insert(Change::begin(store, action, &[]).await?);
        }
    }
    let changed = jobs.into_iter().map(|(job, store)| {
        let context = store.context_number();
        let change = changes[&context].clone();
        async move {
            let result = match change.of(&job).await {
                Err(OpError::Jobs(Error::JobNotFound { .. })) => Outcome::Missing,
                outcome => outcome?,
            };
            Ok::<_, OpError>(ChangedJob {
                id: job.id,
                context,
                result: result.word(),
            })
        }
    });
    let changed = futures_util::stream::iter(changed).buffered(AT_ONCE);
    let jobs = changed.try_collect().await?;
    Ok(ChangedJobs { jobs, next })
}
