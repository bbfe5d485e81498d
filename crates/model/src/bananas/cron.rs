//! Schedules of Bananas' jobs. Bananas defines schedules in its programs, and stores in Redis only the last slot of
//! each. Meshwork stores the definition in Redis too.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ClientVariant, DEFAULT_MAX_RETRIES, InvalidJob, NewJob};
use crate::name::{JobId, NameError, ScheduleName};
use crate::route::UnknownPriority;
use crate::schedule::timing::{Recurrence, RecurrenceError, Timing};
use crate::schedule::zone::ZoneError;

/// Greatest number of schedules in a deployment. Each worker reads all of them once a second.
pub const MAX_CRONS: usize = 1000;

/// A schedule of jobs of Bananas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// Name of the schedule. A schedule with the same name in Bananas' programs is the same schedule.
    pub name: ScheduleName,
    /// Times of the schedule.
    pub timing: Timing,
    /// Template of its jobs. The template's id is not used.
    pub job: NewJob,
}

/// The reason why a schedule is refused or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCron {
    /// The schedule's job is invalid.
    #[error("schedule {name}: {source}")]
    Job {
        /// The schedule.
        name: ScheduleName,
        /// The fault of the job.
        source: InvalidJob,
    },
    /// The schedule has no slot.
    #[error("schedule {name} is never due: {rhythm} in {zone}")]
    Never {
        /// The schedule.
        name: ScheduleName,
        /// Its recurrence.
        rhythm: String,
        /// Its time zone.
        zone: String,
    },
    /// The stored schedule cannot be read.
    #[error("schedule {name} cannot be read: {why}; add it again, or remove it")]
    Unreadable {
        /// The schedule.
        name: ScheduleName,
        /// The reason.
        why: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored {
    rhythm: String,
    zone: String,
    job: String,
    payload: Box<RawValue>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default)]
    priority: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(default = "default_max_retries")]
    max_retries: u32,
}

fn default_max_retries() -> u32 {
    DEFAULT_MAX_RETRIES
}

impl Cron {
    /// Checks the schedule, and returns its first slot after `after`. Both times are in milliseconds since 1970.
    ///
    /// # Errors
    /// The job is invalid, or the schedule has no slot.
    pub fn first(&self, after: u64) -> Result<u64, InvalidCron> {
        if let Err(source) = self.job.record(ClientVariant::default()) {
            let name = self.name.clone();
            return Err(InvalidCron::Job { name, source });
        }
        self.timing.next(after).ok_or_else(|| InvalidCron::Never {
            name: self.name.clone(),
            rhythm: self.timing.rhythm.to_string(),
            zone: self.timing.zone.to_string(),
        })
    }

    /// Returns the job of a slot.
    #[must_use]
    pub fn job_as(&self, id: JobId) -> NewJob {
        NewJob {
            id,
            ..self.job.clone()
        }
    }

    /// Returns the schedule as stored JSON.
    ///
    /// # Errors
    /// The payload is not JSON.
    pub fn encode(&self) -> Result<String, InvalidCron> {
        let unreadable = |why: serde_json::Error| InvalidCron::Unreadable {
            name: self.name.clone(),
            why: why.to_string(),
        };
        let payload = RawValue::from_string(self.job.payload.clone()).map_err(unreadable)?;
        let stored = Stored {
            rhythm: self.timing.rhythm.to_string(),
            zone: self.timing.zone.to_string(),
            job: self.job.name.clone(),
            payload,
            description: self.job.description.clone(),
            priority: self.job.priority.to_string(),
            route: self.job.route.as_ref().map(ToString::to_string),
            max_retries: self.job.max_retries,
        };
        serde_json::to_string(&stored).map_err(unreadable)
    }

    /// Reads a stored schedule. `id` becomes the id of the job template, which is not used.
    ///
    /// # Errors
    /// The text is not a schedule.
    pub fn decode(name: &ScheduleName, text: &str, id: JobId) -> Result<Self, InvalidCron> {
        let unreadable = |why: String| InvalidCron::Unreadable {
            name: name.clone(),
            why,
        };
        let stored: Stored =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let rhythm: Recurrence = stored
            .rhythm
            .parse()
            .map_err(|error: RecurrenceError| unreadable(error.to_string()))?;
        let zone = stored
            .zone
            .parse()
            .map_err(|error: ZoneError| unreadable(error.to_string()))?;
        let route = stored.route.map(|route| route.parse()).transpose();
        let mut job = NewJob::new(id, stored.job, stored.payload.get());
        job.description = stored.description;
        job.priority = stored
            .priority
            .parse()
            .map_err(|error: UnknownPriority| unreadable(error.to_string()))?;
        job.route = route.map_err(|error: NameError| unreadable(error.to_string()))?;
        job.max_retries = stored.max_retries;
        Ok(Self {
            name: name.clone(),
            timing: Timing {
                zone,
                ..Timing::new(rhythm)
            },
            job,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(rhythm: &str, zone: &str) -> Cron {
        let mut job = NewJob::new(
            "1".parse().unwrap(),
            "send_email",
            "{\"n\":12345678901234567890}",
        );
        job.route = Some("email".parse().unwrap());
        job.description = "every night".to_owned();
        Cron {
            name: "nightly".parse().unwrap(),
            timing: Timing {
                zone: zone.parse().unwrap(),
                ..Timing::new(rhythm.parse().unwrap())
            },
            job,
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let cron = cron("0 0 * * *", "Europe/Brussels");
        let text = cron.encode().unwrap();
        assert!(text.contains("12345678901234567890"), "{text}");
        let read = Cron::decode(&cron.name, &text, cron.job.id.clone());
        assert_eq!(read, Ok(cron));
    }

    #[test]
    fn it_is_due_in_its_zone() {
        // 2026-11-20T11:33:45Z; midnight in Brussels is 23:00 in UTC.
        let now = 1_795_174_425_000;
        let midnight = cron("0 0 * * *", "Europe/Brussels").first(now).unwrap();
        assert_eq!(super::super::seconds(midnight), "2026-11-20T23:00:00Z");
    }

    #[test]
    fn what_is_none_is_refused_by_name() {
        let never = cron("0 0 1 1 *", "UTC").first(u64::MAX).unwrap_err();
        assert!(never.to_string().contains("nightly"));
        let mut bad = cron("0 0 * * *", "UTC");
        bad.job.payload = "{".to_owned();
        assert!(bad.first(0).unwrap_err().to_string().contains("nightly"));
        assert!(bad.encode().is_err());
        for text in [
            "",
            "{}",
            "{\"rhythm\":\"x\",\"zone\":\"UTC\",\"job\":\"n\",\"payload\":1}",
        ] {
            let error = Cron::decode(&bad.name, text, bad.job.id.clone()).unwrap_err();
            assert!(error.to_string().contains("nightly"), "{error}");
        }
    }
}
