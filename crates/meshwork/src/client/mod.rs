//! The client: enqueues jobs, waits for them, reads and changes them.

mod alert;
mod batch;
mod builder;
mod bulk;
mod cancel;
mod children;
mod dead;
mod events;
mod filter;
mod follow;
mod in_context;
mod logs;
mod name;
mod pages;
mod purge;
mod queue;
mod request;
mod schedule;
mod shared_calls;
mod submit;
mod typed;
mod wait;

use meshwork_macros::boxed;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "embedded")]
use meshwork_broker::conn::Conn;
use meshwork_broker::conn::Target;
use meshwork_broker::{
    Blocker, BlockingConn, Broker, Deleted, JobChange, JobPage, MAX_ITEMS, Retried, RunNow, SetJob,
    Tries,
};
use meshwork_model::job::Job as Record;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::wait_pool::WaitPool;
pub use batch::{Batch, BatchRequest};
pub use builder::{ClientBuilder, data_directory};
pub use bulk::BulkCancel;
pub use events::{EventFilter, EventFollower, EventPage};
pub use filter::{FoundJobs, JobFilter, JobState, MAX_TEXT_SCAN};
use in_context::Numbers;
pub(crate) use in_context::ObjectAccess;
pub use logs::LogFollower;
pub use name::local_name;
pub use pages::{InvalidCursor, MAX_PAGE, PageCursor, PagedJob, PagedJobs};
pub use request::JobRequest;
pub use schedule::{NewSchedule, ScheduleHandle};
use shared_calls::SharedCalls;
pub use submit::Placed;
use typed::output_of;
pub use typed::{Enqueue, Enqueueable, Job, JobHandle};

/// Longest time for which a call is repeated while the server is unreachable.
const REPEAT_FOR: Duration = Duration::from_secs(15);

/// Wait for the result of a job of unknown options.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// Returns true if a write should be repeated. A server out of memory is reported at once.
fn worth_repeating(error: &meshwork_broker::Error, tries: &mut Tries) -> bool {
    tries.repeat(error) && !error.is_out_of_memory()
}

/// A client; cheap to clone. Clones share their connections.
///
/// ```
/// use meshwork::{Client, Worker};
///
/// #[meshwork::job(output = u64)]
/// struct Add { a: u64, b: u64 }
///
/// async fn add(job: Add) -> Result<u64, String> { Ok(job.a + job.b) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// // Or `Client::open("redis://127.0.0.1")`.
/// let client = Client::in_memory();
/// let worker = Worker::new(&client).job(add).start().await?;
/// let job = client.enqueue(Add { a: 1, b: 2 }).retries(3).await?;
/// assert_eq!(job.result().await?, 3);
/// // A clone of the client, in another part of the program, finds the job by its id.
/// assert_eq!(client.clone().status(job.id()).await?.status, "finished");
/// worker.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    broker: Broker,
    wait_pool: Arc<WaitPool<BlockingConn>>,
    shared_calls: Arc<SharedCalls>,
    /// Source of job numbers; only in a context.
    numbers: Option<Arc<Numbers>>,
    /// Rights of callers to objects of scripts; only in a context.
    object_access: Option<Arc<dyn ObjectAccess>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a builder, which connects with a namespace, with TLS files, or to a folder.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Connects to the server at `url`, in the format of `REDIS_URL`, with the namespace `hero`.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    #[boxed]
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::builder().url(url).connect().await
    }

    /// Connects to `target`, with the namespace `hero`.
    ///
    /// # Errors
    /// The server does not answer, or is not suitable for jobs.
    #[boxed]
    pub async fn connect(target: &Target) -> Result<Self, Error> {
        let broker = Broker::connect(target, JobKeys::default()).await?;
        Ok(Self::new(broker.acting_as(&local_name("client"))))
    }

    /// Creates a client over a broker. The broker's actor is recorded in events ([`Broker::acting_as`]).
    #[must_use]
    pub fn new(broker: Broker) -> Self {
        Self {
            broker,
            wait_pool: Arc::default(),
            shared_calls: Arc::default(),
            numbers: None,
            object_access: None,
        }
    }

    /// Sets the check of rights to objects of scripts, for workers over this client.
    #[must_use]
    pub(crate) fn with_object_access(mut self, access: Arc<dyn ObjectAccess>) -> Self {
        self.object_access = Some(access);
        self
    }

    pub(crate) fn object_access(&self) -> Option<&Arc<dyn ObjectAccess>> {
        self.object_access.as_ref()
    }

    /// Returns a client that others see in events under this name. Both share their connections.
    #[must_use]
    pub fn acting_as(&self, name: &str) -> Self {
        Self {
            broker: self.broker.clone().acting_as(name),
            // Jobs of one call have one actor.
            shared_calls: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the broker of this client.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Enqueues a typed job and waits for its result, as [`JobHandle::result`](crate::JobHandle::result).
    ///
    /// # Errors
    /// As [`Client::enqueue`]; or the job fails or does not end in time, or its result is not of the type.
    pub async fn call<J: Job>(&self, job: J) -> Result<J::Output, Error> {
        let request = job.into_request()?;
        output_of(&self.run(request).await?)
    }

    /// Enqueues a job for the handler of this name and waits for its result, for names that are known at run time only.
    /// Payload and result are JSON.
    ///
    /// # Errors
    /// The payload cannot be encoded, the result cannot be decoded, or the job fails or does not end in time.
    pub async fn call_named<In: Serialize + ?Sized, Out: DeserializeOwned>(
        &self,
        handler: &str,
        payload: &In,
    ) -> Result<Out, Error> {
        let request = JobRequest::new(handler.parse()?, "").payload(payload)?;
        output_of(&self.run(request).await?)
    }

    /// Returns a handle to a stored job. Nothing is read until a method of it is called.
    #[must_use]
    pub fn job<J: Job>(&self, id: JobId) -> JobHandle<J> {
        JobHandle::new(self.clone(), id, false, PATIENCE)
    }

    /// Creates a client of a store in the memory of this process, which ends with its last client: for tests.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Broker::new(Conn::in_memory(), JobKeys::default()))
    }

    /// Enqueues a job and waits until it has finished, at most for [`JobRequest::wait_budget`].
    ///
    /// # Errors
    /// As [`Client::enqueue`] and [`Client::result`].
    #[boxed]
    pub async fn run(&self, request: JobRequest) -> Result<Record, Error> {
        let request = request.reply(true);
        let patience = request.wait_budget();
        let id = self.enqueue(request).await?;
        self.result(&id, patience).await
    }

    /// Waits until a job has finished.
    ///
    /// # Errors
    /// The job failed ([`Error::Failed`]), does not exist, or has not ended after `patience`.
    #[boxed]
    pub async fn result(&self, id: &JobId, patience: Duration) -> Result<Record, Error> {
        let job = self.wait(id, patience).await?;
        match job.status() {
            Some(Status::Finished) => Ok(job),
            _ => Err(Error::Failed {
                id: id.clone(),
                message: job.error.unwrap_or_else(|| "no reason given".to_owned()),
                traceback: job.traceback,
            }),
        }
    }

    /// Returns a job with its whole record.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn status(&self, id: &JobId) -> Result<Record, Error> {
        self.broker
            .inspect(id)
            .await?
            .ok_or_else(|| Error::JobNotFound { id: id.clone() })
    }

    /// Returns a job without script, input, result and logs.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn summary(&self, id: &JobId) -> Result<Record, Error> {
        let summaries = self.broker.summaries(std::slice::from_ref(id)).await?;
        let summary = summaries.into_iter().next().flatten();
        summary.ok_or_else(|| Error::JobNotFound { id: id.clone() })
    }

    /// Returns a page of all jobs, in no order, without script, input, result and logs. Begin with `from` 0, and
    /// continue at `next` until it is 0.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn list(&self, from: u64) -> Result<JobPage, Error> {
        Ok(self.broker.list(from).await?)
    }

    /// Returns a page of at most 1,000 stale jobs after the first `from`, the longest stale first, without script,
    /// input, result and logs. A stale job is a suspected orphan: open and on no list, or started without a lease
    /// longer ago than its timeout. Workers detect stale jobs. [`Client::retry`] runs one again.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn stale(&self, from: usize) -> Result<Vec<Record>, Error> {
        let stale = self.broker.list_stale(from, MAX_ITEMS).await?;
        let ids: Vec<_> = stale.into_iter().map(|job| job.id).collect();
        Ok(self
            .broker
            .summaries(&ids)
            .await?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Returns the prerequisites for which a job waits, each with its status; `None` for a job that does not exist.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn prerequisites(&self, job: &Record) -> Result<Vec<(JobId, Option<Status>)>, Error> {
        let ids = job.depends_on.iter().cloned().map(JobId::foreign);
        let ids: Vec<_> = ids.collect();
        let mut statuses = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_ITEMS) {
            statuses.extend(self.broker.statuses(chunk).await?);
        }
        Ok(ids.into_iter().zip(statuses).collect())
    }

    /// Returns the time of a failed job's retry, in milliseconds since 1970. `None` if no retry is scheduled.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn next_run(&self, id: &JobId) -> Result<Option<u64>, Error> {
        Ok(self.broker.next_run(id).await?)
    }

    /// Returns the reasons why a job waits, other than prerequisites and earlier jobs: its time, a pause, a limit, or
    /// fair turns between keys.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn blockers(&self, job: &Record) -> Result<Vec<Blocker>, Error> {
        Ok(self.broker.blockers(job).await?)
    }

    /// Ends the delay of a job, also that of a retry. The job goes to the end of its queue, whose limits still apply.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn run_now(&self, id: &JobId) -> Result<RunNow, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.run_now(&job).await?)
    }

    /// Changes the priority, the due time or the timeout of a job that waits. A job whose priority or due time changes
    /// goes to the end of its queue.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn set_job(&self, id: &JobId, change: &JobChange) -> Result<SetJob, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.set_job(&job, change).await?)
    }

    /// Returns true if a live worker listens to the queue of `route`.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn has_worker(&self, route: &Route) -> Result<bool, Error> {
        Ok(self
            .broker
            .is_listened(&route.queue(self.broker.keys()))
            .await?)
    }

    /// Runs an ended job again.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn retry(&self, id: &JobId) -> Result<Retried, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.retry(&job).await?)
    }

    /// Deletes a job, unless it runs.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn delete(&self, id: &JobId) -> Result<Deleted, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.delete(&job).await?)
    }
}
