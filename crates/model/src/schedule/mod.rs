//! Schedules: when a job is to run again and again, and what becomes of the slots that were missed or come too
//! soon. Pure: what time it is, and which slots were decided, whoever asks says. Where schedules are kept, and
//! that each slot runs once, is the matter of the broker's verb `tick`.

pub mod cron;
pub mod every;
pub mod policy;
mod record;
pub mod timing;
pub mod zone;

#[cfg(test)]
mod tests;

use crate::job::{Invalid, NewJob};
use crate::name::{JobId, ScheduleName};
use crate::time::iso;
use policy::{CatchUp, Overlap};
use timing::Timing;

pub use record::Unreadable;

/// A slot that is later than this, in milliseconds, was missed: whoever lives has taken over long before.
pub const MISSED_AFTER_MS: u64 = 60_000;
/// The most slots of one schedule that one call decides.
pub const MAX_SLOTS: usize = 100;
/// The variable in a job's environment that tells its slot, in ISO 8601.
pub const SLOT_VARIABLE: &str = "MESHWORK_SLOT";

/// A job that runs again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name, by which its jobs are named too.
    pub name: ScheduleName,
    /// When.
    pub timing: Timing,
    /// What becomes of missed slots.
    pub catch_up: CatchUp,
    /// What becomes of a slot while the last run has not ended.
    pub overlap: Overlap,
    /// The job of each slot; its id is that of the slot.
    job: NewJob,
    /// What a later release wrote.
    rest: record::Rest,
}

/// Why a schedule was refused; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Its job cannot be meant.
    #[error("schedule {name}: {source}")]
    Job {
        /// The schedule.
        name: ScheduleName,
        /// What is wrong.
        source: Invalid,
    },
    /// A job that waits for others would wait for the same ones each time.
    #[error("schedule {name}: a job of a schedule cannot depend on other jobs")]
    Prerequisites {
        /// The schedule.
        name: ScheduleName,
    },
    /// Its jobs run at their slots.
    #[error("schedule {name}: a job of a schedule runs at its slots, not at another time")]
    When {
        /// The schedule.
        name: ScheduleName,
    },
    /// A batch ends, and a schedule goes on.
    #[error(
        "schedule {name}: a job of a schedule cannot belong to a batch: have it open one of its own"
    )]
    Batch {
        /// The schedule.
        name: ScheduleName,
    },
    /// All missed slots are due at once, and only one of them could run.
    #[error(
        "schedule {name}: to catch up with all slots, several have to run side by side: overlap allow"
    )]
    OneAtATime {
        /// The schedule.
        name: ScheduleName,
    },
    /// It has no slot.
    #[error("schedule {name}: {rhythm} never comes between its start and its end")]
    NoSlot {
        /// The schedule.
        name: ScheduleName,
        /// How often.
        rhythm: String,
    },
}

/// What is to be done about a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The slots whose jobs are to run, the oldest first; at most [`MAX_SLOTS`].
    pub slots: Vec<u64>,
    /// The last slot that is decided then.
    pub position: u64,
    /// The slot after that: due already, if there were more than fit.
    pub next: Option<u64>,
}

impl Schedule {
    /// A schedule of a job, whose id is of no account.
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

    /// The job that its slots have in common.
    #[must_use]
    pub fn template(&self) -> &NewJob {
        &self.job
    }

    /// Checks it.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let name = || self.name.clone();
        // With the environment that a slot adds.
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

    /// The job of a slot, in milliseconds since 1970. Its id is made of the schedule's name and the slot, so
    /// that nobody can run it twice while its record is there.
    #[must_use]
    pub fn job_at(&self, slot: u64) -> NewJob {
        let time = iso(slot - slot % 1000);
        let compact: String = time.split(['-', ':']).collect();
        let compact = compact.split('.').next().unwrap_or_default();
        self.job_as(&format!("{compact}Z"), slot)
    }

    /// A job of this schedule beside its slots: its id ends with `suffix`.
    #[must_use]
    pub fn job_as(&self, suffix: &str, slot: u64) -> NewJob {
        let mut job = self.job.clone();
        job.id = JobId::foreign(format!("{}.{suffix}", self.name));
        job.env_vars.insert(SLOT_VARIABLE.to_owned(), iso(slot));
        job
    }

    /// What is to be done when it is `now` and all slots up to `position` are decided: at most `room` slots,
    /// one at least.
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

    /// Its slots after a moment.
    pub fn upcoming(&self, after: u64) -> impl Iterator<Item = u64> {
        self.timing.upcoming(after)
    }
}
