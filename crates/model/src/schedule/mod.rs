//! Schedules: the slots of repeated jobs, and rules for missed and overlapping slots. Pure: the caller passes in the
//! time and the last decided slot. The broker's verb `fire_schedules` stores the jobs of due slots and ensures that
//! each slot runs once.

pub mod cron;
pub mod every;
mod phrase;
pub mod policy;
mod record;
pub mod timing;
pub mod wall_time;
pub mod zone;

#[cfg(test)]
mod tests;

use crate::job::{Invalid, NewJob};
use crate::name::{JobId, ScheduleName};
use crate::time::iso;
use policy::{CatchUp, Overlap};
use timing::Timing;

pub use record::Unreadable;

/// Lateness from which a slot counts as missed, in milliseconds. Another worker takes over long before that.
pub const MISSED_AFTER_MS: u64 = 60_000;
/// Greatest number of slots of one schedule that one call decides.
pub const MAX_SLOTS: usize = 100;
/// Environment variable of a job with its slot, in ISO 8601.
pub const SLOT_VARIABLE: &str = "MESHWORK_SLOT";

/// A job that runs repeatedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Name of the schedule, and prefix of its jobs' ids.
    pub name: ScheduleName,
    /// Times of the schedule.
    pub timing: Timing,
    /// Rule for missed slots.
    pub catch_up: CatchUp,
    /// Rule for a slot whose predecessor has not ended.
    pub overlap: Overlap,
    /// Template of the job of each slot; the slot determines the id.
    job: NewJob,
    /// Fields of a later release.
    rest: record::Rest,
}

/// The reason why a schedule was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The job is invalid.
    #[error("schedule {name}: {source}")]
    Job {
        /// The schedule.
        name: ScheduleName,
        /// The fault.
        source: Invalid,
    },
    /// The job has prerequisites, which would be the same ones each time.
    #[error("schedule {name}: a job of a schedule cannot depend on other jobs")]
    Prerequisites {
        /// The schedule.
        name: ScheduleName,
    },
    /// The job has a start time, although it starts at its slots.
    #[error("schedule {name}: a job of a schedule runs at its slots, not at another time")]
    When {
        /// The schedule.
        name: ScheduleName,
    },
    /// The job belongs to a batch, which ends before the schedule.
    #[error(
        "schedule {name}: a job of a schedule cannot belong to a batch: have it open one of its own"
    )]
    Batch {
        /// The schedule.
        name: ScheduleName,
    },
    /// All missed slots would run at once, but the unique name allows only one of them.
    #[error(
        "schedule {name}: to catch up with all slots, several have to run side by side: overlap allow"
    )]
    OneAtATime {
        /// The schedule.
        name: ScheduleName,
    },
    /// The schedule has no slot.
    #[error("schedule {name}: {rhythm} never comes between its start and its end")]
    NoSlot {
        /// The schedule.
        name: ScheduleName,
        /// Its recurrence.
        rhythm: String,
    },
}

/// The decision about a due schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Slots whose jobs are to be enqueued, the oldest first; at most [`MAX_SLOTS`].
    pub slots: Vec<u64>,
    /// Last decided slot.
    pub position: u64,
    /// Next slot. It is already due if the plan is full.
    pub next: Option<u64>,
}

impl Schedule {
    /// Returns a schedule of a job, whose id is not used.
    #[must_use]
    pub fn new(name: ScheduleName, timing: Timing, job: NewJob) -> Self {
        Self {
            name,
            timing,
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            job,
            rest: record::Rest::default(),
        }
    }

    /// Returns the template of its jobs.
    #[must_use]
    pub fn template(&self) -> &NewJob {
        &self.job
    }

    /// Checks the schedule.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let name = || self.name.clone();
        // The environment includes the variable of a slot.
        self.job_at(0)
            .check()
            .map_err(|source| ScheduleError::Job {
                name: name(),
                source,
            })?;
        if !self.job.depends_on.is_empty() {
            return Err(ScheduleError::Prerequisites { name: name() });
        }
        if self.job.when.is_some() {
            return Err(ScheduleError::When { name: name() });
        }
        if self.job.batch.is_some() {
            return Err(ScheduleError::Batch { name: name() });
        }
        if matches!(self.catch_up, CatchUp::All(_)) && self.overlap != Overlap::Allow {
            return Err(ScheduleError::OneAtATime { name: name() });
        }
        match self.timing.next(0) {
            Some(_) => Ok(()),
            None => Err(ScheduleError::NoSlot {
                name: name(),
                rhythm: self.timing.rhythm.to_string(),
            }),
        }
    }

    /// Returns the job of a slot, in milliseconds since 1970. Its id consists of the schedule's name and the slot, so
    /// that it cannot run twice while its record exists.
    #[must_use]
    pub fn job_at(&self, slot: u64) -> NewJob {
        let time = iso(slot - slot % 1000);
        let compact: String = time.split(['-', ':']).collect();
        let compact = compact.split('.').next().unwrap_or_default();
        self.job_as(&format!("{compact}Z"), slot)
    }

    /// Returns an extra job of this schedule, whose id ends with `suffix`.
    #[must_use]
    pub fn job_as(&self, suffix: &str, slot: u64) -> NewJob {
        let mut job = self.job.clone();
        job.id = JobId::foreign(format!("{}.{suffix}", self.name));
        job.env_vars.insert(SLOT_VARIABLE.to_owned(), iso(slot));
        job
    }

    /// Returns the plan at time `now` when all slots up to `position` are decided. It has at most `room` slots, and
    /// at least one is allowed.
    #[must_use]
    pub fn plan(&self, position: u64, now: u64, room: usize) -> Plan {
        let most = match self.catch_up {
            CatchUp::All(most) => most,
            CatchUp::Skip | CatchUp::One => 1,
        };
        let mut slots = self.timing.latest(position, now, most);
        slots.truncate(room.clamp(1, MAX_SLOTS));
        let position = slots.last().copied().unwrap_or(position);
        if self.catch_up == CatchUp::Skip {
            slots.retain(|slot| now - slot <= MISSED_AFTER_MS);
        }
        Plan {
            slots,
            position,
            next: self.timing.next(position),
        }
    }

    /// Returns the slots after a moment.
    pub fn upcoming(&self, after: u64) -> impl Iterator<Item = u64> {
        self.timing.upcoming(after)
    }
}
