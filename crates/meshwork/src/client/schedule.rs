//! Schedules: jobs that run repeatedly. Any worker can fire them.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::{Put, SchedulePage, ScheduleRun, Scheduled};
use meshwork_model::name::{JobId, ScheduleName};
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::every::Every;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::{Recurrence, RecurrenceError, Timing};
use meshwork_model::schedule::zone::Zone;

use super::{Client, Enqueueable, JobRequest};
use crate::Error;

/// Builder of schedules.
///
/// ```
/// use meshwork::{Client, NewSchedule};
///
/// #[meshwork::job]
/// struct Report { kind: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let report = Report { kind: "sales".into() };
/// let nightly = NewSchedule::cron("30 2 * * MON-FRI", report)?.zone("Europe/Brussels")?;
/// let schedule = client.schedule("nightly")?;
/// schedule.add(nightly).await?;
/// schedule.remove().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NewSchedule {
    timing: Timing,
    catch_up: CatchUp,
    overlap: Overlap,
    job: JobRequest,
}

impl NewSchedule {
    /// Creates a schedule of a job by a cron expression: 5 fields, or 6 with the second first; `@hourly`, `@daily`,
    /// `@midnight`, `@weekly`, `@monthly`, `@yearly` or `@annually`; or an interval as `@every 30s`. The job's id is
    /// ignored.
    ///
    /// # Errors
    /// The expression is invalid; the error says what is allowed. Or the payload cannot be encoded.
    pub fn cron(expression: &str, job: impl Enqueueable) -> Result<Self, Error> {
        Ok(Self::new(expression.parse()?, job.into_request()?))
    }

    /// Creates a schedule of a job by an interval in whole seconds, at least one. It counts from the start, or else
    /// from 1970.
    ///
    /// # Errors
    /// The interval is not possible, or the payload cannot be encoded.
    pub fn every(interval: Duration, job: impl Enqueueable) -> Result<Self, Error> {
        let text = format!("{}ms", interval.as_millis());
        let every: Every = text.parse().map_err(RecurrenceError::from)?;
        Ok(Self::new(Recurrence::Every(every), job.into_request()?))
    }

    /// Creates a schedule of a job by a recurrence.
    #[must_use]
    pub fn new(recurrence: Recurrence, job: JobRequest) -> Self {
        Self {
            timing: Timing::new(recurrence),
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            job,
        }
    }

    /// Sets the time zone of a cron expression, by its IANA name. Default: UTC.
    ///
    /// # Errors
    /// The zone is unknown.
    pub fn zone(mut self, name: &str) -> Result<Self, Error> {
        self.timing.zone = name.parse()?;
        Ok(self)
    }

    /// Sets the time zone of a cron expression.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.timing.zone = zone;
        self
    }

    /// Sets the earliest time of a slot, in milliseconds since 1970.
    #[must_use]
    pub fn start(mut self, at_ms: u64) -> Self {
        self.timing.start = Some(at_ms);
        self
    }

    /// Sets the latest time of a slot, in milliseconds since 1970.
    #[must_use]
    pub fn end(mut self, at_ms: u64) -> Self {
        self.timing.end = Some(at_ms);
        self
    }

    /// Sets the policy for slots that were missed while no worker ran. Default: only the latest one runs.
    #[must_use]
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.catch_up = policy;
        self
    }

    /// Sets the policy for a slot whose predecessor's job has not ended. Default: the slot is skipped.
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

/// A schedule by its name, which may or may not exist.
///
/// [`NewSchedule`] has an example.
#[derive(Debug, Clone)]
pub struct ScheduleHandle {
    client: Client,
    name: ScheduleName,
}

impl Client {
    /// Returns a handle to the schedule of a name: `client.schedule("nightly")?.add(request)`.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn schedule(&self, name: &str) -> Result<ScheduleHandle, Error> {
        Ok(ScheduleHandle {
            client: self.clone(),
            name: name.parse()?,
        })
    }

    /// Returns a page of all schedules, in no order. Begin with `from` 0, and continue at `next` until it is 0.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn schedules(&self, from: u64) -> Result<SchedulePage, Error> {
        Ok(self.broker().schedules(from).await?)
    }
}

impl ScheduleHandle {
    /// Returns the name.
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

    /// Stores a new schedule. Its first slot is the next one from now.
    ///
    /// # Errors
    /// The schedule is invalid or would never run, or its name exists ([`Error::ScheduleExists`]). Nothing is written
    /// then.
    #[boxed]
    pub async fn add(&self, request: NewSchedule) -> Result<(), Error> {
        match self.put(request, false).await? {
            Put::Added | Put::Replaced => Ok(()),
            Put::Exists => Err(Error::ScheduleExists {
                name: self.name.clone(),
            }),
        }
    }

    /// Stores or replaces a schedule. Slots up to now follow the old definition and later ones the new one; none is
    /// lost and none runs twice. A paused schedule stays paused. Returns true if the schedule existed.
    ///
    /// # Errors
    /// As [`ScheduleHandle::add`]; or a due slot cannot be decided first.
    #[boxed]
    pub async fn replace(&self, request: NewSchedule) -> Result<bool, Error> {
        Ok(self.put(request, true).await? == Put::Replaced)
    }

    async fn put(&self, request: NewSchedule, replace: bool) -> Result<Put, Error> {
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
    /// The schedule does not exist, or a call to the server fails.
    #[boxed]
    pub async fn show(&self) -> Result<Scheduled, Error> {
        let read = self.client.broker().read_schedule(&self.name).await?;
        read.ok_or_else(|| self.missing())
    }

    /// Pauses the schedule: no slot runs until it is resumed.
    ///
    /// # Errors
    /// The schedule does not exist, or a call to the server fails.
    #[boxed]
    pub async fn pause(&self) -> Result<(), Error> {
        self.there(self.client.broker().pause_schedule(&self.name).await?)
    }

    /// Resumes the schedule from its next slot. Slots during the pause do not run.
    ///
    /// # Errors
    /// The schedule does not exist, or a call to the server fails.
    #[boxed]
    pub async fn resume(&self) -> Result<(), Error> {
        self.there(self.client.broker().resume_schedule(&self.name).await?)
    }

    /// Deletes the schedule. Jobs that it has enqueued stay.
    ///
    /// # Errors
    /// The schedule does not exist, or a call to the server fails.
    #[boxed]
    pub async fn remove(&self) -> Result<(), Error> {
        self.there(self.client.broker().remove_schedule(&self.name).await?)
    }

    /// Returns the next slots, in milliseconds since 1970. For a paused schedule, they are those after a resume now.
    ///
    /// # Errors
    /// The schedule does not exist or cannot be read, or a call to the server fails.
    #[boxed]
    pub async fn next(&self, count: usize) -> Result<Vec<u64>, Error> {
        let (schedule, now) = (
            self.show().await?.schedule?,
            self.client.broker().now().await?,
        );
        Ok(schedule.timing.upcoming(now).take(count).collect())
    }

    /// Enqueues the job of the schedule now, besides its slots, also while it is paused. The overlap policy applies.
    /// Returns the job's id.
    ///
    /// # Errors
    /// The job of the last slot has not ended and the policy is to skip ([`Error::Overlaps`]); the queue refuses the
    /// job; the schedule does not exist or cannot be read; or a call to the server fails.
    #[boxed]
    pub async fn run(&self) -> Result<JobId, Error> {
        let suffix = uuid::Uuid::new_v4().to_string();
        // An attempt only fails if a slot was decided meanwhile.
        for _ in 0..100 {
            let there = self.show().await?;
            let schedule = there.schedule.as_ref().map_err(Clone::clone)?;
            let broker = self.client.broker();
            match broker.run_schedule(&there, schedule, &suffix).await? {
                Some(ScheduleRun::Stored(id)) => return Ok(id),
                Some(ScheduleRun::Skipped) => {
                    return Err(Error::Overlaps {
                        name: self.name.clone(),
                        last: there.last.unwrap_or_else(|| JobId::foreign(String::new())),
                    });
                }
                Some(ScheduleRun::Refused(why)) => {
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
