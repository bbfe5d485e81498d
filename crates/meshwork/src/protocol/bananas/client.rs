//! Client for jobs of Bananas: enqueues, waits for and reads jobs.

use meshwork_macros::boxed;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::bananas::{
    Bananas, Depths, Enqueued, Found, PutCron, RetriedDead, RouteLimit, StoredCron,
};
use meshwork_broker::conn::{Subscriber, Target, TlsFiles};
use meshwork_model::bananas::{ClientVariant, Cron, MAX_CRONS, NewJob, Outcome, Record, Status};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::{JobId, RoutingKey, ScheduleName};
use meshwork_model::queue::QueueSettings;
use meshwork_model::route::Priority;
use meshwork_model::route::bindings::Bindings;
use meshwork_model::route::topic::Topic;
use serde::Serialize;
use tokio::time::Instant;

use crate::Error;
use crate::wait_pool::{PooledConnection, WaitPool};
use meshwork_worker::span::Subject;

/// Pause between two polls of a missing result without a subscription: the first, and the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// Pause between polls: a foreign worker may publish nothing, as for a corrupt job.
const SLICE: Duration = Duration::from_secs(1);

/// A client; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    broker: Bananas,
    peer: ClientVariant,
    wait_pool: Arc<WaitPool<Subscriber>>,
}

/// A job to submit, as a builder.
#[derive(Debug, Clone)]
pub struct Request {
    job: NewJob,
}

impl Request {
    /// Creates a job for the handler `name`, with a payload that is encoded as JSON.
    ///
    /// # Errors
    /// The payload cannot be encoded.
    pub fn new(name: &str, payload: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let id = new_id();
        let payload = serde_json::to_string(payload).map_err(|source| Error::Payload {
            what: "payload",
            id: id.clone(),
            source,
        })?;
        Ok(Self {
            job: NewJob::new(id, name, payload),
        })
    }

    /// Creates a job for the handler `name`, with a payload in JSON. Its numbers and the order of its fields stay.
    #[must_use]
    pub fn raw(name: &str, payload: &str) -> Self {
        Self {
            job: NewJob::new(new_id(), name, payload),
        }
    }

    /// Sets the id. Default: a UUID v4. An existing id is refused.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.job.id = id;
        self
    }

    /// Sets the priority. Default: normal.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.job.priority = priority;
        self
    }

    /// Runs the job only on workers of this route. Default: `default`.
    #[must_use]
    pub fn route(mut self, route: RoutingKey) -> Self {
        self.job.route = Some(route);
        self
    }

    /// Chooses the route by `bindings`, unless the job has one.
    #[must_use]
    pub fn route_by(self, bindings: &Bindings, topic: Option<&Topic>) -> Self {
        if self.job.route.is_some() {
            return self;
        }
        let route = bindings.route(&self.job.name, topic, self.job.payload.as_bytes());
        self.route(route.clone())
    }

    /// Sets a description for people.
    #[must_use]
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.job.description);
        self
    }

    /// Sets the greatest number of attempts. Default: 3.
    #[must_use]
    pub fn max_retries(mut self, runs: u32) -> Self {
        self.job.max_retries = runs;
        self
    }

    /// Delays the job until this time, in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(mut self, ms: u64) -> Self {
        self.job.at_ms = Some(ms);
        self
    }
}

impl Client {
    /// Connects to the server at `url`, with the default keys of Bananas. The client behaves as the Go client.
    ///
    /// # Errors
    /// The URL is invalid, the server does not answer, or it is not suitable for jobs.
    #[boxed]
    pub async fn open(url: &str) -> Result<Self, Error> {
        let target = Target::parse(url, TlsFiles::default())?;
        let broker = Bananas::connect(&target, Keys::default()).await?;
        Ok(Self::new(broker))
    }

    /// Creates a client over a broker.
    #[must_use]
    pub fn new(broker: Bananas) -> Self {
        Self {
            broker,
            peer: ClientVariant::default(),
            wait_pool: Arc::default(),
        }
    }

    /// Sets the variant of client whose records and lists this client writes. Default: Go, which pushes jobs of the
    /// route `default` to lists without a route.
    #[must_use]
    pub fn with_variant(self, peer: ClientVariant) -> Self {
        Self { peer, ..self }
    }

    /// Returns the variant of client.
    #[must_use]
    pub fn variant(&self) -> ClientVariant {
        self.peer
    }

    /// Returns the broker of this client.
    #[must_use]
    pub fn broker(&self) -> &Bananas {
        &self.broker
    }

    /// Submits a job.
    ///
    /// # Errors
    /// The job is invalid, its id exists, or the call to the server fails.
    #[boxed]
    pub async fn enqueue(&self, request: Request) -> Result<JobId, Error> {
        let job = request.job;
        let enqueued = self
            .broker
            .enqueue(std::slice::from_ref(&job), self.peer)
            .await?;
        if enqueued.first() == Some(&Enqueued::Exists) {
            return Err(Error::JobExists { id: job.id });
        }
        let route = job.route.clone().unwrap_or_default();
        Subject {
            job: job.id.as_str(),
            kind: &job.name,
            queue: &job.list(self.peer, self.broker.keys()),
            route: Some(route.as_str()),
            priority: Some(job.priority.as_str()),
            task: None,
        }
        .enqueued();
        Ok(job.id)
    }

    /// Waits until a job has ended. A failed attempt that is followed by another one is no end.
    ///
    /// # Errors
    /// The job has neither record nor result, or has not ended after `patience`.
    #[boxed]
    pub async fn wait(&self, id: &JobId, patience: Duration) -> Result<Outcome, Error> {
        let until = Instant::now() + patience;
        if let Some(outcome) = self.ended(id).await? {
            return Ok(outcome);
        }
        let mut space = self.listening(id).await;
        let (mut pause, mut tried) = (POLL.0, Instant::now());
        let ended = loop {
            // Finds a result that was published before the subscription.
            if let Some(outcome) = self.ended(id).await? {
                break Ok(outcome);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(Error::JobWaitTimeout {
                    id: id.clone(),
                    waited: patience,
                });
            }
            if !self.hears(&mut space, SLICE.min(left)).await {
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(POLL.1);
                if tried.elapsed() >= SLICE {
                    // A broken connection must not occupy its place in the pool.
                    drop(space.take());
                    space = self.listening(id).await;
                    tried = Instant::now();
                }
            }
        };
        if let Some(mut subscriber) = space.as_mut().and_then(|space| space.connection.take())
            && self
                .broker
                .unsubscribe(&mut subscriber, id.as_str())
                .await
                .is_ok()
            && let Some(space) = &mut space
        {
            space.connection = Some(subscriber);
        }
        ended
    }

    /// Returns a connection that is subscribed to the result of a job, if one is free and the user has the right.
    async fn listening(&self, id: &JobId) -> Option<PooledConnection<'_, Subscriber>> {
        let mut space = self
            .wait_pool
            .enter(async || self.broker.subscriber().await)
            .await?;
        let mut subscriber = space.connection.take()?;
        match self.broker.subscribe(&mut subscriber, id.as_str()).await {
            Ok(()) => {
                space.connection = Some(subscriber);
                Some(space)
            }
            Err(error) => {
                tracing::debug!(%error, job = %id, "subscription to the result failed: polling");
                None
            }
        }
    }

    /// Waits up to `time` for a notification. Returns false without a working connection.
    async fn hears(
        &self,
        space: &mut Option<PooledConnection<'_, Subscriber>>,
        time: Duration,
    ) -> bool {
        let Some(subscriber) = space.as_mut().and_then(|space| space.connection.as_mut()) else {
            return false;
        };
        match tokio::time::timeout(time, self.broker.wait_for_result(subscriber)).await {
            Ok(Ok(())) | Err(_) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "wait for a result interrupted: waiting again");
                if let Some(space) = space {
                    space.connection = None;
                }
                false
            }
        }
    }

    /// Returns the outcome of a job, if it has ended.
    async fn ended(&self, id: &JobId) -> Result<Option<Outcome>, Error> {
        // The record is read first, since workers write it with the result or after it.
        let found = self.broker.inspect(id.as_str()).await?;
        let outcome = self.broker.result(id.as_str()).await?;
        let status = match &found {
            Found::Job(record) => record.status(),
            _ => None,
        };
        match (outcome, status) {
            (Some(outcome), Some(Status::Pending | Status::Scheduled)) if !outcome.succeeded => {
                // Another attempt follows.
                Ok(None)
            }
            (Some(outcome), _) => Ok(Some(outcome)),
            (None, _) => match found {
                Found::Missing => Err(Error::JobNotFound { id: id.clone() }),
                // No result is written for a job without a handler, nor by workers without a result backend.
                Found::Job(record) => Ok(record.outcome()),
                _ => Ok(None),
            },
        }
    }

    /// Returns the record of a job.
    ///
    /// # Errors
    /// The job has no readable record, or the call to the server fails.
    #[boxed]
    pub async fn get(&self, id: &JobId) -> Result<Record, Error> {
        match self.broker.inspect(id.as_str()).await? {
            Found::Job(record) => Ok(Arc::unwrap_or_clone(record)),
            _ => Err(Error::JobNotFound { id: id.clone() }),
        }
    }

    /// Returns the result of a job's last attempt, unless it has expired.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn result(&self, id: &JobId) -> Result<Option<Outcome>, Error> {
        Ok(self.broker.result(id.as_str()).await?)
    }

    /// Stores a cron schedule. Workers of Meshwork fire its slots, unless they leave delayed jobs to others. Its first
    /// slot is the next one from now. Returns true if it replaced a schedule.
    ///
    /// # Errors
    /// Its job is invalid, it is never due, its name exists and `replace` is false, there are too many schedules, or
    /// the call to the server fails.
    #[boxed]
    pub async fn put_schedule(&self, cron: &Cron, replace: bool) -> Result<bool, Error> {
        let name = || cron.name.clone();
        match self.broker.put_cron(cron, replace).await? {
            PutCron::Added => Ok(false),
            PutCron::Replaced => Ok(true),
            PutCron::Exists => Err(Error::ScheduleExists { name: name() }),
            PutCron::Full => Err(Error::ScheduleRefused {
                name: name(),
                why: format!("there are {MAX_CRONS} already"),
            }),
        }
    }

    /// Deletes a cron schedule. Jobs that it has enqueued stay.
    ///
    /// # Errors
    /// The schedule does not exist, or the call to the server fails.
    #[boxed]
    pub async fn delete_schedule(&self, name: &ScheduleName) -> Result<(), Error> {
        match self.broker.delete_cron(name).await? {
            true => Ok(()),
            false => Err(Error::NoSchedule { name: name.clone() }),
        }
    }

    /// Returns the cron schedules, by name.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn schedules(&self) -> Result<Vec<StoredCron>, Error> {
        let mut all = self.broker.crons().await?.all;
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Changes single limits of a route; others stay as they are. Limits apply to the jobs that workers of Meshwork
    /// claim from the lists of the route, for all priorities together. Jobs on lists without a route count for
    /// `default`. Bananas' own workers ignore limits and do not count.
    ///
    /// # Errors
    /// A limit is invalid, or the call to the server fails.
    #[boxed]
    pub async fn limit_route(
        &self,
        route: &RoutingKey,
        limits: &[RouteLimit],
    ) -> Result<(), Error> {
        Ok(self.broker.configure(route, limits).await?)
    }

    /// Returns the limits of all routes that have limits.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn limits(&self) -> Result<BTreeMap<RoutingKey, QueueSettings>, Error> {
        Ok(self.broker.limits().await?)
    }

    /// Returns the number of waiting jobs of each list.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn depths(&self) -> Result<Depths, Error> {
        Ok(self.broker.depths().await?)
    }

    /// Retries a dead letter with all its attempts, on the list of its route.
    ///
    /// # Errors
    /// The dead letter does not exist, or the call to the server fails.
    #[boxed]
    pub async fn retry_dead_letter(&self, id: &JobId) -> Result<RetriedDead, Error> {
        let found = self.broker.inspect(id.as_str()).await?;
        match self
            .broker
            .retry_dead(id.as_str(), &found, self.peer)
            .await?
        {
            RetriedDead::Missing => Err(Error::NotDeadLettered { id: id.clone() }),
            replayed => Ok(replayed),
        }
    }

    /// Deletes a dead letter, with its record and its result unless the job runs again.
    ///
    /// # Errors
    /// The dead letter does not exist, or the call to the server fails.
    #[boxed]
    pub async fn delete_dead_letter(&self, id: &JobId) -> Result<(), Error> {
        let found = self.broker.inspect(id.as_str()).await?;
        match self.broker.delete_dead(id.as_str(), &found).await? {
            true => Ok(()),
            false => Err(Error::NotDeadLettered { id: id.clone() }),
        }
    }

    /// Returns the record of a dead letter.
    ///
    /// # Errors
    /// The dead letter does not exist, it has no record, or the call to the server fails.
    #[boxed]
    pub async fn dead_letter(&self, id: &JobId) -> Result<Record, Error> {
        match self.broker.is_dead(id.as_str()).await? {
            true => self.get(id).await,
            false => Err(Error::NotDeadLettered { id: id.clone() }),
        }
    }

    /// Returns the ids of dead letters after the first `from`, the latest first, at most a thousand.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn dead_letters(&self, from: usize) -> Result<Vec<String>, Error> {
        let ids = self.broker.dead(from).await?.into_iter();
        let text = |id: Vec<u8>| String::from_utf8_lossy(&id).into_owned();
        Ok(ids.map(text).collect())
    }
}

/// Returns a new UUID v4, as the clients of Bananas create it.
pub(super) fn new_id() -> JobId {
    JobId::foreign(uuid::Uuid::new_v4().to_string())
}
