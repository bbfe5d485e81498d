//! Results of fired slots, and due schedules as they are read.

use std::time::Duration;

use meshwork_model::name::{JobId, ScheduleName};

/// The result of a call of `fire_schedules`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FiredSlots {
    /// Number of due schedules.
    pub due: usize,
    /// Number of stored jobs.
    pub stored: usize,
    /// Number of slots that were skipped because the previous job had not ended.
    pub skipped: usize,
    /// Schedules that could not be decided, with the reason; they are tried again after 5 s.
    pub troubles: Vec<(ScheduleName, String)>,
    /// Time until the next schedule is due, if there is one.
    pub next: Option<Duration>,
}

/// The result of running the job of a schedule by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleRun {
    /// The job is stored.
    Stored(JobId),
    /// The previous job has not ended, and the schedule's rule is to skip.
    Skipped,
    /// Its queue refused the job, for this reason.
    Refused(String),
}

/// A schedule as read by `due`.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) name: Vec<u8>,
    pub(super) version: Vec<u8>,
    pub(super) position: Vec<u8>,
    pub(super) record: Vec<u8>,
    pub(super) input: Option<Vec<u8>>,
}
