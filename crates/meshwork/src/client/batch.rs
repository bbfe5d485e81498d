//! Batches: jobs that belong together, with callbacks that wait for how they end.

use std::time::Duration;

use meshwork_broker::{
    Backoff, BatchCancelled, BatchOpened, BatchRefusal, BatchSealed, BatchStatus, Broker, Enqueued,
};
use meshwork_model::batch::{Callback, Membership, NewBatch};
use meshwork_model::job::NewJob;
use meshwork_model::name::{BatchId, JobId};
use tokio::time::Instant;

use super::{Client, JobRequest, REPEAT_FOR, worth_repeating};
use crate::Error;

/// Between two looks at a batch that is waited for, at first and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A batch to be opened; made by [`Client::batch`].
#[derive(Debug, Clone)]
pub struct BatchRequest {
    client: Client,
    batch: NewBatch,
    callbacks: Vec<(Callback, JobRequest)>,
}

impl BatchRequest {
    /// With an id of the caller's (default: a UUID v4). Who opens a batch again by its id, as after a crash,
    /// gets the one that there is.
    #[must_use]
    pub fn id(mut self, id: BatchId) -> Self {
        self.batch.id = id;
        self
    }

    /// The batch's name for people, at most 256 bytes.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.batch.name = name.into();
        self
    }

    /// The longest time without a new job before the batch is sealed. A batch sealed so counts as failed, since jobs
    /// may be missing. Default: 1 h; from 1 s to 7 days.
    #[must_use]
    pub fn open_for(mut self, open_for: Duration) -> Self {
        self.batch.open_for = open_for;
        self
    }

    /// A job to be run once when all jobs have ended, well or not.
    #[must_use]
    pub fn on_done(self, request: JobRequest) -> Self {
        self.on(Callback::Done, request)
    }

    /// A job to be run once when all jobs have finished. It ends in error where not all have.
    #[must_use]
    pub fn on_success(self, request: JobRequest) -> Self {
        self.on(Callback::Success, request)
    }

    /// A job to be run once, when the first job has ended in error. It is forgotten where none has.
    #[must_use]
    pub fn on_failure(self, request: JobRequest) -> Self {
        self.on(Callback::Failure, request)
    }

    /// A callback. Its input is written when it is queued: a [`BatchEnd`](crate::model::batch::BatchEnd) as
    /// JSON. It may belong to another batch, but has no other prerequisites, and no time or unique name.
    #[must_use]
    pub fn on(mut self, kind: Callback, request: JobRequest) -> Self {
        self.callbacks.push((kind, request));
        self
    }

    /// Opens it. While the server is away the call is repeated for 15 s.
    ///
    /// # Errors
    /// If something is wrong with it, or a callback is refused as by [`Client::submit`]: nothing was written
    /// then. If the server does not take the call.
    pub async fn open(self) -> Result<Batch, Error> {
        let Self {
            client,
            mut batch,
            callbacks,
        } = self;
        for (kind, request) in callbacks {
            batch.callbacks.push((kind, request.build()?));
        }
        let opened = repeat(&client.broker, async || {
            client.broker.open_batch(&batch).await
        })
        .await?;
        match opened {
            // Who says it again means this one.
            BatchOpened::Opened | BatchOpened::Exists => {}
            BatchOpened::Refused(kind, why) => {
                let mut jobs = batch.callbacks.iter();
                if let Some((_, job)) = jobs.find(|(of, _)| *of == kind) {
                    if why == Enqueued::Exists {
                        let id = job.id.clone();
                        return Err(Error::Exists { id });
                    }
                    client.accepted(job, why).await?;
                }
            }
        }
        Ok(client.batch_of(batch.id))
    }
}

/// A batch that is there; cheap to clone.
#[derive(Debug, Clone)]
pub struct Batch {
    client: Client,
    id: BatchId,
    /// The running job that adds.
    by: Option<(JobId, String)>,
}

impl Batch {
    /// The batch of a run.
    pub(crate) fn of_run(broker: &Broker, id: BatchId, job: JobId, token: String) -> Self {
        Self {
            client: Client::new(broker.clone()),
            id,
            by: Some((job, token)),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &BatchId {
        &self.id
    }

    /// Adds jobs, up to 1,000 in one call, and returns their ids. Those whose id exists are left as they
    /// are and counted no second time: the call may be repeated with the same requests. A job that another
    /// one stands for, since that has its unique name, is not added.
    ///
    /// # Errors
    /// If a job is invalid: nothing was written then. If the batch is not there, is sealed (unless this is
    /// the batch of a run that adds to its own), has ended, or has a million jobs; if a job is refused as by
    /// [`Client::submit`], or the server does not take a call: others may be added then.
    pub async fn add(
        &self,
        requests: impl IntoIterator<Item = JobRequest>,
    ) -> Result<Vec<JobId>, Error> {
        let mut jobs = Vec::new();
        for request in requests {
            let mut job = request.build()?;
            job.batch = Some(Membership {
                batch: self.id.clone(),
                by: self.by.clone(),
            });
            jobs.push(job);
        }
        self.client.submit_all(&jobs).await?;
        Ok(jobs.into_iter().map(|job| job.id).collect())
    }

    /// Seals it: from outside no job comes any more, so it ends with the last of those that it has; at once
    /// if it has none. One that is sealed or has ended stays so.
    ///
    /// # Errors
    /// If it is not there or was cancelled, or the server does not take the call.
    pub async fn seal(&self) -> Result<(), Error> {
        let (id, broker) = (&self.id, &self.client.broker);
        match repeat(broker, async || broker.seal_batch(id).await).await? {
            BatchSealed::Sealed | BatchSealed::Ended => Ok(()),
            BatchSealed::Cancelled => Err(self.closed("it was cancelled")),
            BatchSealed::Missing => Err(self.missing()),
        }
    }

    /// Cancels the batch. Its callbacks and waiting jobs end in error; running jobs get a cancel request. Returns when
    /// all are cancelled or requested, before running jobs have ended. Workers finish an interrupted cancel. False if
    /// the batch had ended.
    ///
    /// # Errors
    /// If it is not there, or the server does not take a call.
    pub async fn cancel(&self, reason: &str) -> Result<bool, Error> {
        loop {
            let (id, broker) = (&self.id, &self.client.broker);
            match repeat(broker, async || broker.cancel_batch(id, reason).await).await? {
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
    /// If it is not there, or the server does not take the call.
    pub async fn status(&self) -> Result<BatchStatus, Error> {
        let broker = &self.client.broker;
        let status = repeat(broker, async || broker.batch_status(&self.id).await).await?;
        status.ok_or_else(|| self.missing())
    }

    /// Waits until it has ended, and tells each change on the way. Callbacks may run on.
    ///
    /// # Errors
    /// If it is not there, or has not ended after `patience`.
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
                return Err(Error::BatchNotEnded { id, waited });
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = POLL.1.min(pause * 2);
            before = Some(status);
        }
    }

    fn missing(&self) -> Error {
        let id = self.id.clone();
        Error::NoBatch { id }
    }

    fn closed(&self, why: &'static str) -> Error {
        let id = self.id.clone();
        Error::BatchClosed { id, why }
    }
}

impl Client {
    /// A batch to be opened; add jobs to what [`BatchRequest::open`] gives, and seal it.
    #[must_use]
    pub fn batch(&self) -> BatchRequest {
        BatchRequest {
            client: self.clone(),
            batch: NewBatch::new(BatchId::foreign(uuid::Uuid::new_v4().to_string())),
            callbacks: Vec::new(),
        }
    }

    /// The batch of this id, which somebody has opened.
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
    /// If there is none, or the server does not take the call.
    pub async fn batch_status(&self, id: &BatchId) -> Result<BatchStatus, Error> {
        self.batch_of(id.clone()).status().await
    }

    /// Up to `limit` batches: those that have not ended, then the others, the last to end first.
    ///
    /// # Errors
    /// If that is more than [`meshwork_broker::MAX_BATCHES`], or the server does not take a call.
    pub async fn batches(&self, limit: usize) -> Result<Vec<BatchStatus>, Error> {
        Ok(self.broker.batches(limit).await?)
    }
}

/// Why a job is not in its batch.
pub(super) fn refused(job: &NewJob, why: BatchRefusal) -> Error {
    let id = job.batch.as_ref().map(|of| of.batch.clone());
    let id = id.unwrap_or_else(|| BatchId::foreign(String::new()));
    let why = match why {
        BatchRefusal::Missing => return Error::NoBatch { id },
        BatchRefusal::Sealed => "it is sealed, and only its own running jobs may add to it",
        BatchRefusal::Ended => "it has ended, or was cancelled",
        BatchRefusal::Full => "it has a million jobs",
    };
    Error::BatchClosed { id, why }
}

/// Repeats a call of a batch while its errors are temporary, for [`REPEAT_FOR`] at most.
async fn repeat<T>(
    broker: &Broker,
    call: impl AsyncFn() -> Result<T, meshwork_broker::Error>,
) -> Result<T, Error> {
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    loop {
        match call().await {
            Err(error) if worth_repeating(&error) && Instant::now() < until => {
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
