//! Verdicts: the answers of a handler or script other than a result.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::time::duration_of;
use ref_cast::RefCast;

/// An error of a handler that decides about the job. A handler returns it as its error, or as a cause of its error; the
/// first in the chain counts, also within an `anyhow::Error`. Any other error is a failure, which is retried if a retry is
/// left.
///
/// ```
/// use std::time::Duration;
/// use meshwork::runtime::{JobContext, JobError};
///
/// async fn pay(order: u64, _: JobContext) -> Result<u64, JobError> {
///     match order {
///         0 => Err(JobError::permanent("there is no order 0")),
///         1 => Err(JobError::retry_after(Duration::from_secs(30), "the bank is busy")),
///         2 => Err(JobError::snooze(Duration::from_secs(3600))),
///         3 => Err(JobError::discard("cancelled by the customer")),
///         order => Ok(order),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// No retry would help: the job ends in error, as a dead letter.
    Permanent(String),
    /// The job runs again after this pause, or else after its backoff, if a retry is left.
    Retry {
        /// Pause, at most 7 days.
        after: Option<Duration>,
        /// Reason.
        message: String,
    },
    /// The job runs again after this pause, at most 7 days, without counting an attempt. Limit: 1,000 times, and 7 days
    /// in total.
    Snooze(Duration),
    /// The job ends in error at once, without a dead letter.
    Discard(String),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permanent(message) | Self::Retry { message, .. } | Self::Discard(message) => {
                f.write_str(message)
            }
            Self::Snooze(pause) => write!(f, "snoozed for {}", duration_of(*pause)),
        }
    }
}

impl Error for JobError {
    /// Returns the verdict once more: `anyhow::Error` keeps the causes of an error, but hides the type of the error itself
    /// when it becomes a `Box<dyn Error>`.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(Verdict::ref_cast(self))
    }
}

/// A verdict as its own cause.
#[derive(Debug, RefCast)]
#[repr(transparent)]
struct Verdict(JobError);

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            JobError::Permanent(_) => "no retry would help",
            JobError::Retry { .. } => "a retry may help",
            JobError::Snooze(_) => "the job runs later",
            JobError::Discard(_) => "the job is given up",
        })
    }
}

impl Error for Verdict {}

impl JobError {
    /// Ends the job in error, as a dead letter.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Permanent(message.into())
    }

    /// Runs the job again after its backoff, if a retry is left.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Retry {
            after: None,
            message,
        }
    }

    /// Runs the job again after this pause, if a retry is left.
    #[must_use]
    pub fn retry_after(pause: Duration, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Retry {
            after: Some(pause),
            message,
        }
    }

    /// Runs the job again after this pause, without counting an attempt.
    #[must_use]
    pub const fn snooze(pause: Duration) -> Self {
        Self::Snooze(pause)
    }

    /// Ends the job in error, without a dead letter.
    #[must_use]
    pub fn discard(message: impl Into<String>) -> Self {
        Self::Discard(message.into())
    }

    /// Returns the failure for the report.
    pub(super) fn into_failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Permanent(_) => Failure::new(FailureKind::Permanent, message),
            Self::Retry { after: None, .. } => Failure::new(FailureKind::Script, message),
            Self::Retry {
                after: Some(pause), ..
            } => Failure::new(FailureKind::Script, message).after(pause),
            Self::Snooze(pause) => Failure::new(FailureKind::Snoozed, message).after(pause),
            Self::Discard(_) => Failure::new(FailureKind::Discarded, message),
        }
    }
}

/// Converts the pause of a script, in seconds.
#[cfg(feature = "scripts")]
pub(super) fn pause(seconds: f64) -> Result<Duration, String> {
    let most = meshwork_model::job::limits::MAX_VERDICT_DELAY.as_secs_f64();
    match (0.0..=most).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(format!("a pause is a number of seconds from 0 to {most}")),
    }
}

/// Returns the first verdict in an error and its causes.
pub(super) fn of_error(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut next = Some(error);
    while let Some(error) = next {
        let hidden = error.downcast_ref::<Verdict>().map(|cause| &cause.0);
        if let Some(verdict) = error.downcast_ref::<JobError>().or(hidden) {
            return Some(verdict.clone().into_failure());
        }
        next = error.source();
    }
    None
}

/// Returns the failure for an error: its message and those of its causes, outermost first.
#[must_use]
pub fn failure_of(error: &(dyn Error + 'static)) -> Failure {
    if let Some(verdict) = of_error(error) {
        return verdict;
    }
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let message = causes.fold(error.to_string(), |said, cause| {
        let cause = cause.to_string();
        // Many errors already repeat their cause.
        if said.ends_with(&cause) {
            said
        } else {
            format!("{said}: {cause}")
        }
    });
    Failure::new(FailureKind::Script, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Outside(#[source] JobError);

    #[test]
    fn a_verdict_is_found_within_an_error() {
        let failure = of_error(&Outside(JobError::snooze(Duration::from_secs(1)))).unwrap();
        assert_eq!(
            (failure.kind, failure.after),
            (FailureKind::Snoozed, Some(Duration::from_secs(1)))
        );
        assert_eq!(of_error(&std::io::Error::other("x")), None);
    }

    #[test]
    fn a_pause_has_bounds() {
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 604_801.0] {
            assert!(pause(seconds).unwrap_err().contains("604800"));
        }
        assert_eq!(
            pause(604_800.0),
            Ok(meshwork_model::job::limits::MAX_VERDICT_DELAY)
        );
        let failure = JobError::retry_after(Duration::MAX, "x").into_failure();
        assert_eq!(
            failure.after,
            Some(meshwork_model::job::limits::MAX_VERDICT_DELAY)
        );
    }
}
