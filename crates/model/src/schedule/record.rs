//! Stored form of a schedule: JSON, with the input stored separately. Fields of later releases are kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Schedule;
use super::timing::{Recurrence, Timing};
use crate::job::StoredJob;
use crate::name::{JobId, ScheduleName};

/// Unknown fields of the schedule, and of its job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rest {
    schedule: Map<String, Value>,
    job: Map<String, Value>,
}

/// A record that is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of schedule {name} cannot be read: {why}")]
pub struct Unreadable {
    name: ScheduleName,
    why: String,
}

impl Unreadable {
    /// Returns the error of a schedule whose key has another type.
    #[must_use]
    pub fn other_type(name: ScheduleName) -> Self {
        let why = "its key has another type".to_owned();
        Self { name, why }
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    rhythm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    catch_up: String,
    overlap: String,
    job: StoredJob,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Schedule {
    /// Returns the record without the input of the job.
    #[must_use]
    pub fn encode(&self) -> String {
        let timing = &self.timing;
        let stored = Stored {
            rhythm: timing.rhythm.to_string(),
            zone: (timing.zone != Default::default()).then(|| timing.zone.to_string()),
            start: timing.start,
            end: timing.end,
            catch_up: self.catch_up.to_string(),
            overlap: self.overlap.to_string(),
            job: StoredJob::new(&self.job, self.rest.job.clone()),
            rest: self.rest.schedule.clone(),
        };
        // Strings and numbers always serialize.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Returns the input of its job.
    #[must_use]
    pub fn input(&self) -> Option<&[u8]> {
        self.job.input.as_deref()
    }

    /// Reads a record of [`Schedule::encode`].
    ///
    /// # Errors
    /// The bytes are no such record, or a later release wrote it in another format.
    pub fn decode(
        name: &ScheduleName,
        record: &[u8],
        input: Option<Vec<u8>>,
    ) -> Result<Self, Unreadable> {
        read(name, record, input).map_err(|why| Unreadable {
            name: name.clone(),
            why,
        })
    }
}

fn read(name: &ScheduleName, record: &[u8], input: Option<Vec<u8>>) -> Result<Schedule, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut stored: Stored = serde_json::from_slice(record).map_err(|error| said(&error))?;
    let rhythm: Recurrence = stored.rhythm.parse().map_err(|error| said(&error))?;
    let zone = stored.zone.as_deref().unwrap_or("UTC");
    let timing = Timing {
        rhythm,
        zone: zone.parse().map_err(|error| said(&error))?,
        start: stored.start,
        end: stored.end,
    };
    let rest = Rest {
        schedule: std::mem::take(&mut stored.rest),
        job: std::mem::take(&mut stored.job.rest),
    };
    let mut job = stored.job.read(JobId::foreign(name.to_string()))?;
    job.input = input;
    Ok(Schedule {
        name: name.clone(),
        timing,
        catch_up: stored.catch_up.parse().map_err(|error| said(&error))?,
        overlap: stored.overlap.parse().map_err(|error| said(&error))?,
        job,
        rest,
    })
}
