//! A job on its way to the outbox, with the options of this call.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use meshwork::{Enqueueable, JobId, JobRequest, Priority, host_ms};
use meshwork_model::job::{NewJob, OnDuplicate, Until, When};
use meshwork_model::name::Group;
use sqlx::Transaction;

use crate::{Database, Error, Outbox};

/// A job in the outbox. It exists if its transaction commits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// Id of the job, for [`Client::job`](meshwork::Client::job).
    pub id: JobId,
    /// False for a job whose id was in the outbox already, which stays.
    pub is_new: bool,
}

/// A call of [`Outbox::enqueue`]: choose options, and await it.
#[must_use = "a job is enqueued when the call is awaited"]
pub struct Enqueue<'a, 't, D: Database, E> {
    outbox: &'a Outbox,
    tx: &'a mut Transaction<'t, D>,
    request: Result<JobRequest, meshwork::Error>,
    of: PhantomData<fn() -> E>,
}

impl<'a, 't, D: Database, E: Enqueueable> Enqueue<'a, 't, D, E> {
    pub(crate) fn new(outbox: &'a Outbox, tx: &'a mut Transaction<'t, D>, job: E) -> Self {
        Self {
            outbox,
            tx,
            request: job.into_request(),
            of: PhantomData,
        }
    }

    /// Changes the request: for options that have no method here.
    pub fn with(mut self, change: impl FnOnce(JobRequest) -> JobRequest) -> Self {
        self.request = self.request.map(change);
        self
    }

    /// Sets the id, 1 to 128 letters, digits, `_`, `-` or `.`. Default: a UUID v4.
    pub fn id(mut self, id: &str) -> Self {
        self.request = self.request.and_then(|request| Ok(request.id(id.parse()?)));
        self
    }

    /// Delays the job, from this call on, by the clock of this host.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|request| request.delay(delay))
    }

    /// Delays the job until this time ([`JobRequest::run_at`]).
    pub fn run_at(self, at: SystemTime) -> Self {
        self.with(|request| request.run_at(at))
    }

    /// Sets the number of retries ([`JobRequest::retries`]).
    pub fn retries(self, retries: u32) -> Self {
        self.with(|request| request.retries(retries))
    }

    /// Sets the priority ([`JobRequest::priority`]).
    pub fn priority(self, priority: Priority) -> Self {
        self.with(|request| request.priority(priority))
    }

    /// Runs the job only on workers of this group ([`JobRequest::group`]).
    pub fn group(self, group: Group) -> Self {
        self.with(|request| request.group(group))
    }

    /// Sets the concurrency key ([`JobRequest::key`]).
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|request| request.key(key))
    }

    /// Reserves a name when the job reaches the store ([`JobRequest::unique`]).
    pub fn unique(self, name: impl Into<String>, until: Until, policy: OnDuplicate) -> Self {
        self.with(|request| request.unique(name, until, policy))
    }
}

impl<D: Database, E> std::fmt::Debug for Enqueue<'_, '_, D, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let request = &self.request;
        f.debug_struct("Enqueue")
            .field("request", request)
            .finish_non_exhaustive()
    }
}

impl<'a, D: Database, E: Enqueueable> IntoFuture for Enqueue<'a, '_, D, E>
where
    Self: 'a,
{
    type Output = Result<Accepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self {
            outbox,
            tx,
            request,
            ..
        } = self;
        Box::pin(async move {
            let mut job = request?.build().map_err(meshwork::Error::from)?;
            if let Some(When::In(ms)) = job.when {
                // The row may wait for the relay.
                job.when = Some(When::At(host_ms().saturating_add(ms)));
            }
            insert(outbox, tx, &job).await
        })
    }
}

async fn insert<D: Database>(
    outbox: &Outbox,
    tx: &mut Transaction<'_, D>,
    job: &NewJob,
) -> Result<Accepted, Error> {
    let text = job.to_json();
    let row = (job.id.as_str(), text.as_str());
    let is_new = D::insert(tx, &outbox.tables, row, outbox.notifies()).await;
    let is_new = is_new.map_err(|error| outbox.error::<D>(error))?;
    Ok(Accepted {
        id: job.id.clone(),
        is_new,
    })
}
