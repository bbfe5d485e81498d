//! A job on its way to the store, with the options of this call.

use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use meshwork_model::job::{OnDuplicate, Tag, Until};
use meshwork_model::name::{Group, JobId};
use meshwork_model::route::Priority;

use super::{Job, JobHandle};
use crate::Error;
use crate::client::{Client, JobRequest, Placed};

/// Argument of [`Client::enqueue`]: a value of a [`Job`], or a [`JobRequest`] for scripts and for types that are known
/// at run time only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no job",
    label = "neither a job nor a `JobRequest`",
    note = "`#[meshwork::job]` above a struct or an enum makes it a job; `#[derive(Job)]` does so beside serde's derives"
)]
pub trait Enqueueable: sealed::Sealed + Send {
    /// Answer to the call: a [`JobHandle`] for a typed job, the id for a [`JobRequest`].
    type Answer;

    /// Makes the request.
    #[doc(hidden)]
    fn into_request(self) -> Result<JobRequest, Error>;

    /// Makes the answer.
    #[doc(hidden)]
    fn answer(client: &Client, placed: Placed, patience: Duration) -> Result<Self::Answer, Error>;
}

mod sealed {
    pub trait Sealed {}

    impl<J: super::Job> Sealed for J {}
    impl Sealed for crate::JobRequest {}
}

impl Enqueueable for JobRequest {
    type Answer = JobId;

    fn into_request(self) -> Result<JobRequest, Error> {
        Ok(self)
    }

    fn answer(_: &Client, placed: Placed, _: Duration) -> Result<JobId, Error> {
        match placed {
            Placed::New(id) | Placed::Kept(id) => Ok(id),
            Placed::IdExists(id) => Err(Error::JobExists { id }),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<J: Job> Enqueueable for J {
    type Answer = JobHandle<J>;

    fn into_request(self) -> Result<JobRequest, Error> {
        let request = JobRequest::new(J::NAME.parse()?, "").payload(&self)?;
        Ok(self.defaults(request))
    }

    fn answer(client: &Client, placed: Placed, patience: Duration) -> Result<Self::Answer, Error> {
        let is_new = matches!(placed, Placed::New(_));
        let (Placed::New(id) | Placed::Kept(id) | Placed::IdExists(id)) = placed;
        Ok(JobHandle::new(client.clone(), id, is_new, patience))
    }
}

/// A call of [`Client::enqueue`]: choose options, and await it.
#[must_use = "a job is enqueued when the call is awaited"]
#[derive(Debug)]
pub struct Enqueue<'a, E> {
    client: &'a Client,
    request: Result<JobRequest, Error>,
    of: std::marker::PhantomData<fn() -> E>,
}

impl<'a, E: Enqueueable> Enqueue<'a, E> {
    pub(in crate::client) fn new(client: &'a Client, what: E) -> Self {
        Self {
            client,
            request: what.into_request(),
            of: std::marker::PhantomData,
        }
    }

    /// Changes the request: for options that have no method here.
    pub fn with(mut self, change: impl FnOnce(JobRequest) -> JobRequest) -> Self {
        self.request = self.request.map(change);
        self
    }
}

impl<J: Job> Enqueue<'_, J> {
    /// Sets the id, 1 to 128 letters, digits, `_`, `-` or `.`. Default: a UUID v4. A job with this id stays, and is the
    /// answer ([`JobHandle::is_new`]).
    pub fn id(mut self, id: &str) -> Self {
        self.request = self.request.and_then(|request| Ok(request.id(id.parse()?)));
        self
    }

    /// Delays the job ([`JobRequest::delay`]).
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

    /// Sets the pause before the first retry ([`JobRequest::backoff`]).
    pub fn backoff(self, first: Duration) -> Self {
        self.with(|request| request.backoff(first))
    }

    /// Sets the longest time of one attempt ([`JobRequest::timeout`]).
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|request| request.timeout(timeout))
    }

    /// Sets the time within which a worker has to begin the job ([`JobRequest::start_timeout`]).
    pub fn start_timeout(self, timeout: Duration) -> Self {
        self.with(|request| request.start_timeout(timeout))
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

    /// Adds a label ([`JobRequest::tag`]).
    pub fn tag(self, tag: Tag) -> Self {
        self.with(|request| request.tag(tag))
    }

    /// Reserves a name ([`JobRequest::unique`]).
    pub fn unique(self, name: impl Into<String>, until: Until, policy: OnDuplicate) -> Self {
        self.with(|request| request.unique(name, until, policy))
    }

    /// Runs the job when no other of this name was enqueued for `pause` ([`JobRequest::debounce`]).
    pub fn debounce(self, name: impl Into<String>, pause: Duration) -> Self {
        self.with(|request| request.debounce(name, pause))
    }

    /// Stores only the first job of this name within `window` ([`JobRequest::throttle`]).
    pub fn throttle(self, name: impl Into<String>, window: Duration) -> Self {
        self.with(|request| request.throttle(name, window))
    }

    /// Runs the job after another one has ended ([`JobRequest::depends_on`]).
    pub fn after<K: Job>(self, job: &JobHandle<K>) -> Self {
        let id = job.id().clone();
        self.with(|request| request.depends_on(id))
    }

    /// As [`Enqueue::after`]; the handler finds the result in its [`Inputs`](crate::Inputs) under this name
    /// ([`JobRequest::depends_on_as`]).
    pub fn after_as<K: Job>(self, name: impl Into<String>, job: &JobHandle<K>) -> Self {
        let id = job.id().clone();
        self.with(|request| request.depends_on_as(name, id))
    }
}

impl<'a, E: Enqueueable> IntoFuture for Enqueue<'a, E> {
    type Output = Result<E::Answer, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let (client, request) = (self.client, self.request);
        Box::pin(async move {
            let request = request?;
            let patience = request.wait_budget();
            E::answer(client, client.place(request).await?, patience)
        })
    }
}
