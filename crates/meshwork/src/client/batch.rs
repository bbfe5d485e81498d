//! Batches: jobs that are counted together, with callbacks.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::{
    Backoff, BatchCancelled, BatchOpened, BatchRefusal, BatchSealed, BatchStatus, Broker, Enqueued,
    Tries,
};
use meshwork_model::batch::{Callback, Membership, NewBatch};
use meshwork_model::cancellation::cancelled_for;
use meshwork_model::job::NewJob;
use meshwork_model::name::{BatchId, JobId};
use tokio::time::Instant;

use super::{Client, Enqueueable, JobRequest, Placed, REPEAT_FOR, worth_repeating};
use crate::Error;

/// Pause between two polls while waiting for a batch: the first, and the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Builder of a batch; see [`Client::batch`].
///
/// ```
/// use meshwork::{Client, Worker};
/// use meshwork::testing::drain;
///
/// #[meshwork::job]
/// struct Pay { order: u64 }
///
/// #[meshwork::job]
/// struct Report;
///
/// async fn pay(job: Pay) -> Result<(), String> {
///     if job.order == 0 { Err("no order".to_owned()) } else { Ok(()) }
/// }
///
/// async fn report(_: Report) -> Result<(), String> { Ok(()) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let batch = client.batch().name("orders").on_done(Report).open().await?;
/// batch.add((1..=3).map(|order| Pay { order })).await?;
/// batch.seal().await?;
/// // Three jobs, and the callback of their end.
/// let done = drain(&client, Worker::new(&client).job(pay).job(report)).await?;
/// assert_eq!(done.finished, 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BatchRequest {
    client: Client,
    batch: NewBatch,
    callbacks: Vec<(Callback, Result<JobRequest, Error>)>,
}

impl BatchRequest {
    /// Sets the id of the batch. Default: a UUID v4. Opening a batch whose id exists returns the existing one, as after
    /// a crash.
    #[must_use]
    pub fn id(mut self, id: BatchId) -> Self {
        self.batch.id = id;
        self
    }

    /// Sets a name for people, at most 256 bytes.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.batch.name = name.into();
        self
    }

    /// Sets the longest time without a new job. After that, maintenance seals the batch as failed, since jobs may be
    /// missing. Default: 1 h, minimum: 1 s, maximum: 7 days.
    #[must_use]
    pub fn open_for(mut self, open_for: Duration) -> Self {
        self.batch.open_for = open_for;
        self
    }

    /// Sets the digest of the request that the batch is made from. It tells a repeated request from another one with the
    /// same id ([`BatchStatus::request_digest`]).
    #[must_use]
    pub fn request_digest(mut self, digest: impl Into<String>) -> Self {
        self.batch.request_digest = Some(digest.into());
        self
    }

    /// Sets the callback that runs once when all jobs have ended, in success or error.
    #[must_use]
    pub fn on_done(self, job: impl Enqueueable) -> Self {
        self.on(Callback::Done, job)
    }

    /// Sets the callback that runs once when all jobs have finished. If a job ended in error, the callback ends in
    /// error.
    #[must_use]
    pub fn on_success(self, job: impl Enqueueable) -> Self {
        self.on(Callback::Success, job)
    }

    /// Sets the callback that runs once when the first job has ended in error. If all jobs finish, it is dropped.
    #[must_use]
    pub fn on_failure(self, job: impl Enqueueable) -> Self {
        self.on(Callback::Failure, job)
    }

    /// Sets a callback. Its input is written when it is enqueued: a [`BatchEnd`](meshwork_model::batch::BatchEnd) as
    /// JSON. It may belong to another batch, but has no prerequisites, delay or unique name.
    #[must_use]
    pub fn on(mut self, kind: Callback, job: impl Enqueueable) -> Self {
        self.callbacks.push((kind, job.into_request()));
        self
    }

    /// Creates the batch. While the server is unreachable, the call is repeated for 15 s.
    ///
    /// # Errors
    /// The request is invalid, or a callback is refused as by [`Client::enqueue`]; nothing is written then. Or the call
    /// to the server fails.
    #[boxed]
    pub async fn open(self) -> Result<Batch, Error> {
        let Self {
            client,
            mut batch,
            callbacks,
        } = self;
        for (kind, request) in callbacks {
            batch.callbacks.push((kind, request?.build()?));
        }
        let opened = repeat(&client.broker, || client.broker.open_batch(&batch)).await?;
        match opened {
            // A repeated call means the same batch.
            BatchOpened::Opened | BatchOpened::Exists => {}
            BatchOpened::Refused(kind, why) => {
                let mut jobs = batch.callbacks.iter();
                if let Some((_, job)) = jobs.find(|(of, _)| *of == kind) {
                    if why == Enqueued::Exists {
                        let id = job.id.clone();
                        return Err(Error::JobExists { id });
                    }
                    client.accepted(job, why).await?;
                }
            }
        }
        Ok(client.batch_of(batch.id))
    }
}

/// An existing batch; cheap to clone.
///
/// [`BatchRequest`] has an example.
#[derive(Debug, Clone)]
pub struct Batch {
    client: Client,
    id: BatchId,
    /// The running job that adds jobs, with its token.
    by: Option<(JobId, String)>,
}

impl Batch {
    /// Returns the batch of a running job.
    pub(crate) fn of_run(broker: &Broker, id: BatchId, job: JobId, token: String) -> Self {
        Self {
            client: Client::new(broker.clone()),
            id,
            by: Some((job, token)),
        }
    }

    /// Returns the id of the batch.
    #[must_use]
    pub fn id(&self) -> &BatchId {
        &self.id
    }

    /// Adds jobs, up to 1,000 in one call, and returns their ids, or their handles if they are typed. Existing ids are
    /// left alone and count once, so the call may be repeated. A job whose unique name another job has is not added; the
    /// answer is that other job.
    ///
    /// # Errors
    /// A job is invalid; nothing is written then. The batch does not exist, has ended, has a million jobs, or is sealed
    /// (running jobs of the batch may still add jobs). A job is refused as by [`Client::enqueue`], or a call to the
    /// server fails; other jobs may have been added then.
    pub async fn add<E: Enqueueable>(
        &self,
        requests: impl IntoIterator<Item = E>,
    ) -> Result<Vec<E::Answer>, Error> {
        let (mut jobs, mut patience) = (Vec::new(), Vec::new());
        for request in requests {
            let request = request.into_request()?;
            patience.push(request.wait_budget());
            let mut job = request.build()?;
            job.batch = Some(Membership {
                batch: self.id.clone(),
                by: self.by.clone(),
            });
            jobs.push(job);
        }
        let placed = self
            .client
            .place_all(&jobs)
            .await?
            .into_iter()
            .zip(patience);
        let answer = |(placed, patience): (Result<Placed, Error>, _)| match placed? {
            Placed::IdExists(id) => E::answer(&self.client, Placed::Kept(id), patience),
            placed => E::answer(&self.client, placed, patience),
        };
        placed.map(answer).collect()
    }

    /// Seals the batch: it ends when all its jobs have ended, and at once without jobs. A sealed or ended batch stays
    /// as it is.
    ///
    /// # Errors
    /// The batch does not exist or was cancelled, or the call to the server fails.
    #[boxed]
    pub async fn seal(&self) -> Result<(), Error> {
        let (id, broker) = (&self.id, &self.client.broker);
        match repeat(broker, || broker.seal_batch(id)).await? {
            BatchSealed::Sealed | BatchSealed::Ended => Ok(()),
            BatchSealed::Cancelled => Err(self.closed("it was cancelled")),
            BatchSealed::Missing => Err(self.missing()),
        }
    }

    /// Cancels the batch. Its callbacks and waiting jobs end in error; running jobs get a cancel request. Returns
    /// before running jobs have ended. If the call is interrupted, workers complete it. The error of the cancelled jobs
    /// names the reason. Returns false if the batch had ended.
    ///
    /// # Errors
    /// The batch does not exist, or a call to the server fails.
    #[boxed]
    pub async fn cancel(&self, reason: &str) -> Result<bool, Error> {
        let reason = cancelled_for(reason);
        loop {
            let (id, broker) = (&self.id, &self.client.broker);
            match repeat(broker, || broker.cancel_batch(id, &reason)).await? {
                BatchCancelled::GoingOn => {}
                BatchCancelled::Cancelled => return Ok(true),
                BatchCancelled::Ended => return Ok(false),
                BatchCancelled::Missing => return Err(self.missing()),
            }
        }
    }

    /// Reads the status of this batch.
    ///
    /// # Errors
    /// The batch does not exist, or the call to the server fails.
    #[boxed]
    pub async fn status(&self) -> Result<BatchStatus, Error> {
        let broker = &self.client.broker;
        let status = repeat(broker, || broker.batch_status(&self.id)).await?;
        status.ok_or_else(|| self.missing())
    }

    /// Waits until the batch has ended. Calls the closure with each change. Callbacks may still run then.
    ///
    /// # Errors
    /// The batch does not exist, or has not ended after `patience`.
    pub async fn wait(
        &self,
        patience: Duration,
        mut progress: impl FnMut(&BatchStatus),
    ) -> Result<BatchStatus, Error> {
        let (until, mut pause) = (Instant::now() + patience, POLL.0);
        let mut before = None;
        loop {
            let status = self.status().await?;
            if before.as_ref() != Some(&status) {
                progress(&status);
                pause = POLL.0;
            }
            if status.state.is_final() {
                return Ok(status);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let id = self.id.clone();
                let waited = patience;
                return Err(Error::BatchWaitTimeout { id, waited });
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = POLL.1.min(pause * 2);
            before = Some(status);
        }
    }

    fn missing(&self) -> Error {
        let id = self.id.clone();
        Error::BatchNotFound { id }
    }

    fn closed(&self, why: &'static str) -> Error {
        let id = self.id.clone();
        Error::BatchClosed { id, why }
    }
}

impl Client {
    /// Returns a builder of a batch. Create it with [`BatchRequest::open`], add jobs, and seal it.
    #[must_use]
    pub fn batch(&self) -> BatchRequest {
        BatchRequest {
            client: self.clone(),
            batch: NewBatch::new(BatchId::foreign(uuid::Uuid::new_v4().to_string())),
            callbacks: Vec::new(),
        }
    }

    /// Returns a handle to an existing batch.
    #[must_use]
    pub fn batch_of(&self, id: BatchId) -> Batch {
        Batch {
            client: self.clone(),
            id,
            by: None,
        }
    }

    /// Reads the status of a batch.
    ///
    /// # Errors
    /// The batch does not exist, or the call to the server fails.
    #[boxed]
    pub async fn batch_status(&self, id: &BatchId) -> Result<BatchStatus, Error> {
        self.batch_of(id.clone()).status().await
    }

    /// Returns up to `limit` batches: open ones, then ended ones, the latest first.
    ///
    /// # Errors
    /// `limit` is greater than [`meshwork_broker::MAX_BATCHES`], or a call to the server fails.
    #[boxed]
    pub async fn batches(&self, limit: usize) -> Result<Vec<BatchStatus>, Error> {
        Ok(self.broker.batches(0, limit).await?.0)
    }
}

/// Returns the error for a job that could not be added to its batch.
pub(super) fn refused(job: &NewJob, why: BatchRefusal) -> Error {
    let id = job.batch.as_ref().map(|of| of.batch.clone());
    let id = id.unwrap_or_else(|| BatchId::foreign(String::new()));
    let why = match why {
        BatchRefusal::Missing => return Error::BatchNotFound { id },
        BatchRefusal::Sealed => "it is sealed, and only its own running jobs may add to it",
        BatchRefusal::Ended => "it has ended, or was cancelled",
        BatchRefusal::Full => "it has a million jobs",
    };
    Error::BatchClosed { id, why }
}

/// Repeats a call while its errors are temporary, at most for [`REPEAT_FOR`].
async fn repeat<T, F: Future<Output = Result<T, meshwork_broker::Error>>>(
    broker: &Broker,
    call: impl Fn() -> F,
) -> Result<T, Error> {
    let (mut tries, mut backoff) = (Tries::within(REPEAT_FOR), Backoff::new());
    loop {
        match call().await {
            Err(error) if worth_repeating(&error, &mut tries) => {
                broker.outages().failed("batch", &error);
                backoff.wait().await;
            }
            Ok(answer) => {
                broker.outages().succeeded("batch");
                return Ok(answer);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
