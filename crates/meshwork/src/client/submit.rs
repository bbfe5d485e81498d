//! Enqueueing jobs, and errors for refused jobs.

use meshwork_broker::{Backoff, Enqueued, MAX_ENQUEUE, Tries};
use meshwork_macros::boxed;
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use tokio::time::Instant;

use super::shared_calls::Stored;
use super::{Client, Enqueue, Enqueueable, JobRequest, REPEAT_FOR, batch, worth_repeating};
use crate::Error;
use meshwork_worker::span::Subject;

/// The job that a call left in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// The job of the call, or one that an earlier, broken call may have stored.
    New(JobId),
    /// The job that has its unique name, and stays.
    Kept(JobId),
    /// A job with its id, which stays.
    IdExists(JobId),
}

impl Client {
    /// Enqueues a job: a value of a [`Job`](crate::Job), or a [`JobRequest`]. Await the call, after further options of a
    /// typed job.
    ///
    /// A typed job gives a [`JobHandle`](crate::JobHandle), also that of an earlier job of the same id or unique name,
    /// which stays. A request gives the id of the stored job, or that of the job that has its unique name and stays; an
    /// id that exists is an error.
    ///
    /// While the server is unreachable, the call is repeated for 15 s. A server out of memory is reported at once.
    ///
    /// ```
    /// # use meshwork::{Client, Job};
    /// # use serde::{Deserialize, Serialize};
    /// # use std::time::Duration;
    /// #[derive(Serialize, Deserialize, Job)]
    /// struct Pay { order: u64 }
    ///
    /// # async fn run(client: Client) -> Result<(), meshwork::Error> {
    /// let job = client.enqueue(Pay { order: 7 }).delay(Duration::from_secs(10)).retries(3).await?;
    /// println!("{}", job.id());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The job is invalid, its queue is full, or a prerequisite does not exist; nothing is written then. Or the call to
    /// the server fails.
    pub fn enqueue<E: Enqueueable>(&self, job: E) -> Enqueue<'_, E> {
        Enqueue::new(self, job)
    }

    /// Enqueues a job.
    pub(crate) async fn place(&self, request: JobRequest) -> Result<Placed, Error> {
        if let (Some(numbers), false) = (&self.numbers, request.has_id()) {
            return self.enqueue_numbered(numbers, request).await;
        }
        self.enqueue_named(request).await
    }

    /// Enqueues a job that has an id.
    pub(super) async fn enqueue_named(&self, request: JobRequest) -> Result<Placed, Error> {
        let (job, stored) = self.store_one(request.build()?).await?;
        self.log(std::slice::from_ref(&job), std::slice::from_ref(&stored.0));
        self.placed(&job, stored).await
    }

    /// Enqueues any number of jobs, up to 1,000 in one call, and returns an answer for each, in order, as
    /// [`Client::enqueue`] does. A refused job does not affect others.
    ///
    /// # Errors
    /// A job is invalid; nothing is written then. Or a call to the server fails; some jobs may be stored then. Those
    /// with ids or unique names can be enqueued again.
    pub async fn enqueue_all<E: Enqueueable>(
        &self,
        jobs: impl IntoIterator<Item = E>,
    ) -> Result<Vec<Result<E::Answer, Error>>, Error> {
        let (mut built, mut patience) = (Vec::new(), Vec::new());
        for job in jobs {
            let mut request = job.into_request()?;
            if self.numbers.is_some() && !request.has_id() {
                request = request.id(self.next_job_id().await?);
            }
            patience.push(request.wait_budget());
            built.push(request.build()?);
        }
        let placed = self.place_all(&built).await?.into_iter().zip(patience);
        let answers = placed.map(|(placed, patience)| E::answer(self, placed?, patience));
        Ok(answers.collect())
    }

    /// Enqueues jobs that were checked, and returns the place of each, or the error for its refusal.
    pub(super) async fn place_all(
        &self,
        jobs: &[NewJob],
    ) -> Result<Vec<Result<Placed, Error>>, Error> {
        let mut places = Vec::with_capacity(jobs.len());
        for (job, stored) in jobs.iter().zip(self.store_all(jobs).await?) {
            places.push(self.placed(job, stored).await);
        }
        Ok(places)
    }

    /// Returns the place of a job, or the error for its refusal.
    pub(crate) async fn placed(
        &self,
        job: &NewJob,
        (answer, repeated): Stored,
    ) -> Result<Placed, Error> {
        // After a broken call the existing job may be this one.
        let exists = answer == Enqueued::Exists && !repeated;
        Ok(match self.accepted(job, answer).await? {
            None if exists => Placed::IdExists(job.id.clone()),
            None => Placed::New(job.id.clone()),
            Some(other) => Placed::Kept(other),
        })
    }

    /// Enqueues several jobs, up to 1,000 in one call. Existing ids are left alone, so the call may be repeated. A job
    /// may depend on an earlier one of the call.
    ///
    /// # Errors
    /// A job is invalid; nothing is written then. A job is refused as by [`Client::enqueue`], or a call to the server
    /// fails; other jobs may be stored then.
    #[boxed]
    pub async fn enqueue_built(&self, jobs: &[NewJob]) -> Result<(), Error> {
        for (job, answer) in jobs.iter().zip(self.try_enqueue_built(jobs).await?) {
            if let Some(refusal) = self.rejection(job, &answer).await? {
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Enqueues any number of jobs, up to 1,000 in one call, and returns the outcome of each, in order. A refused job
    /// does not affect others. The outcome of a job that an earlier, broken call has stored is `Exists`.
    ///
    /// # Errors
    /// A job is invalid; nothing is written then. Or a call to the server fails; some jobs may be stored then, and the
    /// call can be repeated.
    #[boxed]
    pub async fn try_enqueue_built(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
        for job in jobs {
            job.check()?;
        }
        let answers = self.store_all(jobs).await?.into_iter();
        Ok(answers.map(|(answer, _)| answer).collect())
    }

    /// Stores up to 1,000 jobs in one call. Returns the outcome of each, and whether its call was repeated.
    pub(crate) async fn store_all(&self, jobs: &[NewJob]) -> Result<Vec<Stored>, Error> {
        let mut answers = Vec::with_capacity(jobs.len());
        for chunk in jobs.chunks(MAX_ENQUEUE) {
            let until = Instant::now() + REPEAT_FOR;
            let (some, repeated) = self.store_until(chunk, until).await?;
            self.log(chunk, &some);
            answers.extend(some.into_iter().map(|answer| (answer, repeated)));
        }
        Ok(answers)
    }

    /// Returns the error for an outcome, if the job was refused.
    ///
    /// # Errors
    /// The settings of the queue cannot be read.
    #[boxed]
    pub async fn rejection(&self, job: &NewJob, answer: &Enqueued) -> Result<Option<Error>, Error> {
        match self.accepted(job, answer.clone()).await {
            Ok(_) => Ok(None),
            Err(
                error @ (Error::DuplicateUniqueKey { .. }
                | Error::QueueDraining { .. }
                | Error::PayloadTooLarge { .. }
                | Error::UnknownPrerequisite { .. }
                | Error::BatchNotFound { .. }
                | Error::BatchClosed { .. }
                | Error::QueueFull { .. }),
            ) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Repeats a broken call until `until`.
    pub(super) async fn store_until(
        &self,
        jobs: &[NewJob],
        until: Instant,
    ) -> Result<(Vec<Enqueued>, bool), Error> {
        let (mut backoff, mut repeated) = (Backoff::new(), false);
        let mut tries = Tries::until(until);
        loop {
            match self.broker.enqueue(jobs).await {
                Ok(enqueued) => {
                    self.broker.outages().succeeded("enqueue");
                    return Ok((enqueued, repeated));
                }
                Err(error) if worth_repeating(&error, &mut tries) => {
                    self.broker.outages().failed("enqueue", &error);
                    repeated = true;
                    backoff.wait().await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Logs the jobs that are stored now.
    fn log(&self, jobs: &[NewJob], enqueued: &[Enqueued]) {
        if !tracing::enabled!(target: "meshwork::span", tracing::Level::INFO) {
            return;
        }
        let jobs = jobs.iter().zip(enqueued);
        for (job, _) in jobs.filter(|(_, enqueued)| **enqueued == Enqueued::Stored) {
            let route = &job.route;
            Subject {
                job: job.id.as_str(),
                kind: route.script_type.as_str(),
                queue: &route.queue(self.broker.keys()),
                route: route.group.as_ref().map(|group| group.as_str()),
                priority: Some(route.priority.as_str()),
                task: None,
            }
            .enqueued();
        }
    }

    /// Returns an error if the job was refused, and the id of another job that has its unique name.
    pub(crate) async fn accepted(
        &self,
        job: &NewJob,
        answer: Enqueued,
    ) -> Result<Option<JobId>, Error> {
        let id = job.id.clone();
        match answer {
            Enqueued::Stored | Enqueued::Exists => Ok(None),
            Enqueued::Kept(other) => Ok(Some(other)),
            Enqueued::Taken(other) => Err(Error::DuplicateUniqueKey { id, other }),
            Enqueued::Draining => {
                let queue = self.queue_of(job);
                Err(Error::QueueDraining { id, queue })
            }
            Enqueued::Large(bytes) => {
                let queue = self.queue_of(job);
                Err(Error::PayloadTooLarge { id, queue, bytes })
            }
            Enqueued::Unknown(prerequisite) => Err(Error::UnknownPrerequisite { id, prerequisite }),
            Enqueued::NotInBatch(why) => Err(batch::refused(job, why)),
            Enqueued::Full => Err(self.full(job).await?),
            // Only spread queues enqueue jobs with such answers, and they read them before.
            Enqueued::Stale(_) | Enqueued::Elsewhere => {
                let answer = format!("{answer:?} for {id}");
                let verb = "enqueue";
                Err(meshwork_broker::Error::Answer { verb, answer }.into())
            }
        }
    }

    /// Returns the error that names the full queue. Of two lists, it is the one at its limit.
    async fn full(&self, job: &NewJob) -> Result<Error, Error> {
        let (keys, limits) = (self.broker.keys(), self.limits().await?);
        let mut queue = job.route.queue(keys);
        if let Some(fallback) = job.fallback {
            let other = fallback.route(&job.route).queue(keys);
            let queues = self.queues().await?;
            let waiting = queues.iter().find(|info| info.queue == queue);
            let waiting = waiting.map_or(0, |info| info.waiting as u64);
            if limits.of(&queue).is_none_or(|limit| waiting < limit) {
                queue = other;
            }
        }
        Ok(Error::QueueFull {
            id: job.id.clone(),
            limit: limits.of(&queue),
            queue: keys.queue_name(&queue).to_owned(),
        })
    }

    /// Returns the name of a job's queue.
    fn queue_of(&self, job: &NewJob) -> String {
        let keys = self.broker.keys();
        keys.queue_name(&job.route.queue(keys)).to_owned()
    }
}
