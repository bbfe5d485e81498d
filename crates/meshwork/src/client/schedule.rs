//! Schedules: jobs that run again and again. Which worker looks after them is no matter: any of them does.

use std::time::Duration;

use meshwork_broker::{Put, Ran, SchedulePage, Scheduled};
use meshwork_model::name::{JobId, ScheduleName};
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::every::Every;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::{Rhythm, RhythmError, Timing};
use meshwork_model::schedule::zone::Zone;

use super::{Client, JobRequest};
use crate::Error;

/// Builder of schedules.
#[derive(Debug, Clone)]
pub struct ScheduleRequest {
    timing: Timing,
    catch_up: CatchUp,
    overlap: Overlap,
    job: JobRequest,
}

impl ScheduleRequest {
    /// A job by a cron expression of 5 or 6 fields (with 6, the second is the first), one of `@hourly`, `@daily`,
    /// `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually`, or `@every 30s`. The job's id is ignored.
    ///
    /// # Errors
    /// If the expression is invalid; the error names what is allowed.
    pub fn cron(expression: &str, job: JobRequest) -> Result<Self, Error> {
        Ok(Self::new(expression.parse()?, job))
    }

    /// A job every so often: whole seconds, at least one. Counted from the start, or from 1970 if there is
    /// none.
    ///
    /// # Errors
    /// If the interval is not possible.
    pub fn every(interval: Duration, job: JobRequest) -> Result<Self, Error> {
        let text = format!("{}ms", interval.as_millis());
        let every: Every = text.parse().map_err(RhythmError::from)?;
        Ok(Self::new(Rhythm::Every(every), job))
    }

    /// A job by a rhythm.
    #[must_use]
    pub fn new(rhythm: Rhythm, job: JobRequest) -> Self {
        Self {
            timing: Timing::new(rhythm),
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            job,
        }
    }

    /// Whose clock a cron expression means: the IANA name of a time zone (default: UTC).
    ///
    /// # Errors
    /// If there is no such zone.
    pub fn zone(mut self, name: &str) -> Result<Self, Error> {
        self.timing.zone = name.parse()?;
        Ok(self)
    }

    /// The same with a zone that is known to be one.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.timing.zone = zone;
        self
    }

    /// No slot before this time, in milliseconds since 1970.
    #[must_use]
    pub fn start(mut self, at_ms: u64) -> Self {
        self.timing.start = Some(at_ms);
        self
    }

    /// No slot after this time, in milliseconds since 1970.
    #[must_use]
    pub fn end(mut self, at_ms: u64) -> Self {
        self.timing.end = Some(at_ms);
        self
    }

    /// Policy for slots missed while no worker ran. Default: only the latest runs.
    #[must_use]
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.catch_up = policy;
        self
    }

    /// Policy for a slot whose predecessor's job has not ended. Default: the slot is skipped.
    #[must_use]
    pub fn overlap(mut self, policy: Overlap) -> Self {
        self.overlap = policy;
        self
    }

    fn build(self, name: &ScheduleName) -> Result<Schedule, Error> {
        let id = JobId::foreign(name.to_string());
        let job = self.job.id(id).build()?;
        let mut schedule = Schedule::new(name.clone(), self.timing, job);
        schedule.catch_up = self.catch_up;
        schedule.overlap = self.overlap;
        Ok(schedule)
    }
}

/// A schedule by its name, whether it is there or not.
#[derive(Debug, Clone)]
pub struct ScheduleHandle {
    client: Client,
    name: ScheduleName,
}

impl Client {
    /// The schedule of that name: `client.schedule("nightly")?.add(request)`.
    ///
    /// # Errors
    /// If no schedule can have the name.
    pub fn schedule(&self, name: &str) -> Result<ScheduleHandle, Error> {
        Ok(ScheduleHandle {
            client: self.clone(),
            name: name.parse()?,
        })
    }

    /// A page of all schedules, in no order; begin at 0, go on at `next` until it is 0.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn schedules(&self, from: u64) -> Result<SchedulePage, Error> {
        Ok(self.broker().schedules(from).await?)
    }
}

impl ScheduleHandle {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ScheduleName {
        &self.name
    }

    fn missing(&self) -> Error {
        Error::NoSchedule {
            name: self.name.clone(),
        }
    }

    fn there(&self, there: bool) -> Result<(), Error> {
        there.then_some(()).ok_or_else(|| self.missing())
    }

    /// Adds it. Its first slot is the first one from now on.
    ///
    /// # Errors
    /// If something of it is wrong, or it would never run; if there is one of that name
    /// ([`Error::ScheduleExists`]). Nothing was written then.
    pub async fn add(&self, request: ScheduleRequest) -> Result<(), Error> {
        match self.put(request, false).await? {
            Put::Added | Put::Replaced => Ok(()),
            Put::Exists => Err(Error::ScheduleExists {
                name: self.name.clone(),
            }),
        }
    }

    /// Adds it, or makes another one of it: slots up to now run as it was, those from now on as it is; none
    /// is lost and none runs twice. If it is paused it stays so. Whether it was there.
    ///
    /// # Errors
    /// As [`ScheduleHandle::add`]; and if a slot that is due cannot be decided first.
    pub async fn replace(&self, request: ScheduleRequest) -> Result<bool, Error> {
        Ok(self.put(request, true).await? == Put::Replaced)
    }

    async fn put(&self, request: ScheduleRequest, replace: bool) -> Result<Put, Error> {
        let schedule = request.build(&self.name)?;
        Ok(self
            .client
            .broker()
            .put_schedule(&schedule, replace)
            .await?)
    }

    /// Reads the schedule and its progress.
    ///
    /// # Errors
    /// If it is not there, or the server does not take a call.
    pub async fn show(&self) -> Result<Scheduled, Error> {
        let read = self.client.broker().read_schedule(&self.name).await?;
        read.ok_or_else(|| self.missing())
    }

    /// Lets it rest: no slot runs until it is resumed.
    ///
    /// # Errors
    /// If it is not there, or the server does not take a call.
    pub async fn pause(&self) -> Result<(), Error> {
        self.there(self.client.broker().pause_schedule(&self.name).await?)
    }

    /// Lets it go on with the first slot from now on. What came while it was paused does not run.
    ///
    /// # Errors
    /// If it is not there, or the server does not take a call.
    pub async fn resume(&self) -> Result<(), Error> {
        self.there(self.client.broker().resume_schedule(&self.name).await?)
    }

    /// Forgets it. Jobs that it has started stay.
    ///
    /// # Errors
    /// If it is not there, or the server does not take a call.
    pub async fn remove(&self) -> Result<(), Error> {
        self.there(self.client.broker().remove_schedule(&self.name).await?)
    }

    /// Its next slots, in milliseconds since 1970; those of a paused one as if it were resumed now.
    ///
    /// # Errors
    /// If it is not there or cannot be read, or the server does not take a call.
    pub async fn next(&self, count: usize) -> Result<Vec<u64>, Error> {
        let (schedule, now) = (
            self.show().await?.schedule?,
            self.client.broker().now().await?,
        );
        Ok(schedule.timing.upcoming(now).take(count).collect())
    }

    /// Runs its job now, beside its slots, also while it is paused. What it says of overlapping holds. The
    /// job's id.
    ///
    /// # Errors
    /// If the job of the last slot has not ended and it says to skip ([`Error::Overlaps`]); if the queue does
    /// not take the job; if it is not there or cannot be read, or the server does not take a call.
    pub async fn run(&self) -> Result<JobId, Error> {
        let suffix = uuid::Uuid::new_v4().to_string();
        // Each try is in vain only if a slot of it was decided in between.
        for _ in 0..100 {
            let there = self.show().await?;
            let schedule = there.schedule.as_ref().map_err(Clone::clone)?;
            let broker = self.client.broker();
            match broker.run_schedule(&there, schedule, &suffix).await? {
                Some(Ran::Stored(id)) => return Ok(id),
                Some(Ran::Skipped) => {
                    return Err(Error::Overlaps {
                        name: self.name.clone(),
                        last: there.last.unwrap_or_else(|| JobId::foreign(String::new())),
                    });
                }
                Some(Ran::Refused(why)) => {
                    return Err(Error::ScheduleRefused {
                        name: self.name.clone(),
                        why,
                    });
                }
                None => {}
            }
        }
        Err(Error::ScheduleRefused {
            name: self.name.clone(),
            why: "it changes all the time".to_owned(),
        })
    }
}
