//! Batches: jobs that belong together, and up to three callbacks that run after their end. Scripts count the jobs;
//! each job's record names its batch.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

pub use crate::job::Membership;
use crate::job::NewJob;
use crate::name::BatchId;
use crate::time::duration_of;

/// Greatest number of jobs in a batch. A walk through all of them, as for a cancellation, takes minutes.
pub const MAX_MEMBERS: u64 = 1_000_000;
/// Greatest length of a batch's name, in bytes.
pub const MAX_BATCH_NAME: usize = 256;
/// Default time for which a batch stays open when no job is added.
pub const DEFAULT_OPEN_FOR: Duration = Duration::from_secs(3600);
/// Least and greatest such time. A slow client exceeds a shorter time; a longer one fills the memory.
pub const OPEN_FOR: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(7 * 24 * 3600));

/// The event that starts a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Callback {
    /// All jobs have ended, with or without success.
    Done,
    /// All jobs have finished.
    Success,
    /// The first job failed, or the batch expired before it was sealed. Other jobs may still run.
    Failure,
}

impl Callback {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Done, Self::Success, Self::Failure];

    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A batch to be created.
#[derive(Debug, Clone)]
pub struct NewBatch {
    /// Id of the batch.
    pub id: BatchId,
    /// Name for people; may be empty.
    pub name: String,
    /// Time for which the batch stays open when no job is added. After that its client counts as dead.
    pub open_for: Duration,
    /// Callbacks, at most one of each kind.
    pub callbacks: Vec<(Callback, NewJob)>,
    /// Digest of the request that it is made from. It tells a repeated request from another one with the same id.
    pub request_digest: Option<String>,
}

/// The reason why a batch was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("batch {id}: {fault}")]
pub struct InvalidBatch {
    /// The batch.
    pub id: BatchId,
    /// The fault.
    pub fault: String,
}

impl NewBatch {
    /// Returns a batch without a name and callbacks.
    #[must_use]
    pub fn new(id: BatchId) -> Self {
        Self {
            id,
            name: String::new(),
            open_for: DEFAULT_OPEN_FOR,
            callbacks: Vec::new(),
            request_digest: None,
        }
    }

    /// Checks everything but the jobs of callbacks.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), InvalidBatch> {
        match self.fault() {
            Some(fault) => Err(InvalidBatch {
                id: self.id.clone(),
                fault,
            }),
            None => Ok(()),
        }
    }

    fn fault(&self) -> Option<String> {
        if self.name.len() > MAX_BATCH_NAME || self.name.contains(char::is_control) {
            return Some(format!(
                "its name has more than {MAX_BATCH_NAME} bytes, or control characters"
            ));
        }
        let (least, most) = OPEN_FOR;
        if !(least..=most).contains(&self.open_for) {
            let [open_for, least, most] = [self.open_for, least, most].map(duration_of);
            return Some(format!(
                "it cannot stay open for {open_for} with nothing added: give {least} to {most}"
            ));
        }
        for (at, (kind, job)) in self.callbacks.iter().enumerate() {
            if self.callbacks[..at].iter().any(|(other, _)| other == kind) {
                return Some(format!("it has two callbacks on {kind}"));
            }
            let id = &job.id;
            for (has, what) in [
                (
                    job.input.is_some(),
                    "has an input, which is the batch's to write",
                ),
                (!job.depends_on.is_empty(), "depends on other jobs"),
                (job.unique.is_some(), "has a unique name"),
                (job.when.is_some(), "has a time of its own"),
            ] {
                if has {
                    return Some(format!("its callback {id} {what}"));
                }
            }
            let own = job.batch.as_ref().is_some_and(|of| of.batch == self.id);
            if own {
                return Some(format!("its callback {id} belongs to the batch itself"));
            }
        }
        None
    }
}

/// The input of a callback, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct BatchEnd {
    /// The batch.
    pub batch: String,
    /// Kind of the callback: `done`, `success` or `failure`.
    pub why: String,
    /// Number of jobs that were added.
    pub total: u64,
    /// Number of jobs that have finished.
    pub succeeded: u64,
    /// Number of jobs that have failed.
    pub failed: u64,
}

impl BatchEnd {
    /// Parses the input of a callback.
    ///
    /// # Errors
    /// The input is not of this form.
    pub fn parse(input: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;

    fn callback(change: impl Fn(&mut NewJob)) -> NewBatch {
        let route = Route::to("osis".parse().unwrap());
        let mut job = NewJob::new("c".parse().unwrap(), route, "1");
        change(&mut job);
        let mut batch = NewBatch::new("b".parse().unwrap());
        batch.callbacks.push((Callback::Done, job));
        batch
    }

    #[test]
    fn a_callback_waits_for_its_batch_and_for_nothing_else() {
        assert_eq!(callback(|_| {}).check(), Ok(()));
        let other = |job: &mut NewJob| {
            let batch = "outer".parse().unwrap();
            job.batch = Some(Membership { batch, by: None });
        };
        assert_eq!(callback(other).check(), Ok(()));
        for change in [
            |job: &mut NewJob| job.input = Some(Vec::new()),
            |job: &mut NewJob| job.depends_on.push("j".parse().unwrap()),
            |job: &mut NewJob| job.unique = Some(crate::job::Unique::debounce("u")),
            |job: &mut NewJob| job.when = Some(crate::job::When::In(1)),
            |job: &mut NewJob| {
                let batch = "b".parse().unwrap();
                job.batch = Some(Membership { batch, by: None });
            },
        ] {
            assert!(callback(change).check().is_err());
        }
        let mut twice = callback(|_| {});
        twice.callbacks.push(twice.callbacks[0].clone());
        assert!(twice.check().is_err());
    }

    #[test]
    fn names_and_times_have_bounds() {
        let mut batch = NewBatch::new("b".parse().unwrap());
        batch.name = "n".repeat(MAX_BATCH_NAME);
        assert_eq!(batch.check(), Ok(()));
        batch.name.push('n');
        assert!(batch.check().is_err());
        batch.name = "two\nlines".to_owned();
        assert!(batch.check().is_err());
        batch.name.clear();
        for open_for in [Duration::ZERO, OPEN_FOR.1 + OPEN_FOR.0] {
            batch.open_for = open_for;
            let said = batch.check().unwrap_err().to_string();
            let time = format!("for {} ", duration_of(open_for));
            assert!(said.contains(&time), "{said}");
        }
    }

    #[test]
    fn the_input_of_a_callback_is_read() {
        let input = br#"{"batch":"b","why":"done","total":3,"succeeded":2,"failed":1}"#;
        let end = BatchEnd::parse(input).unwrap();
        assert_eq!((end.batch.as_str(), end.why.as_str()), ("b", "done"));
        assert_eq!((end.total, end.succeeded, end.failed), (3, 2, 1));
        assert!(BatchEnd::parse(b"").is_err());
    }
}
