//! The statuses of a job and the one table of legal changes. The broker's scripts refuse the
//! same arrows; a conformance case walks every pair.

use std::fmt;
use std::str::FromStr;

/// A job's status, in Hero's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waiting in a queue, or for its next run.
    Dispatched,
    /// Waiting for other jobs (The contexts' word). In a record of Hero it is `dispatched`, since its readers
    /// know no other word, and the number of those jobs stands in a field of its own.
    WaitingForPrerequisites,
    /// Taken by a worker.
    Started,
    /// Done, with a result.
    Finished,
    /// Ended without a result.
    Error,
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker takes the job under a lease.
    Claim,
    /// The worker that holds the lease reports a result.
    Finish,
    /// The worker that holds the lease reports a failure and no run is left.
    Fail,
    /// The worker that holds the lease reports a failure and the job is to run again.
    Requeue,
    /// The worker that holds the lease hands the job back unrun.
    Release,
    /// The lease ended without a report.
    Reclaim,
    /// Somebody stops the job.
    Cancel,
    /// Somebody asks for an ended job to run again.
    Retry,
    /// The last of the jobs that it waits for has ended as it should.
    Ready,
    /// One of the jobs that it waits for did not finish, or its time is over.
    Fault,
}

/// A change that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {status} cannot {event:?}")]
pub struct IllegalTransition {
    /// The status the job has.
    pub status: Status,
    /// What was to happen to it.
    pub event: Event,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 5] = [
        Self::Dispatched,
        Self::WaitingForPrerequisites,
        Self::Started,
        Self::Finished,
        Self::Error,
    ];

    /// The status after `event`.
    ///
    /// # Errors
    /// If a job of this status cannot undergo the event; nothing changes then.
    pub fn next(self, event: Event) -> Result<Self, IllegalTransition> {
        use Event as E;
        match (self, event) {
            (Self::Dispatched, E::Claim) => Ok(Self::Started),
            (Self::Started, E::Finish) => Ok(Self::Finished),
            (Self::Started, E::Fail)
            | (Self::Dispatched | Self::Started, E::Cancel)
            | (Self::WaitingForPrerequisites, E::Cancel | E::Fault) => Ok(Self::Error),
            (Self::Started, E::Requeue | E::Release | E::Reclaim)
            | (Self::WaitingForPrerequisites, E::Ready)
            | (Self::Finished | Self::Error, E::Retry) => Ok(Self::Dispatched),
            (status, event) => Err(IllegalTransition { status, event }),
        }
    }

    /// Whether nothing more happens to the job unless somebody asks for it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }

    /// The status as it stands in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dispatched => "dispatched",
            Self::WaitingForPrerequisites => "waiting_for_prerequisites",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Error => "error",
        }
    }
}

impl Event {
    /// All events.
    pub const ALL: [Self; 10] = [
        Self::Claim,
        Self::Finish,
        Self::Fail,
        Self::Requeue,
        Self::Release,
        Self::Reclaim,
        Self::Cancel,
        Self::Retry,
        Self::Ready,
        Self::Fault,
    ];
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status that is none of Hero's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no status: dispatched, waiting_for_prerequisites, started, finished or error")]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_means_only_a_retry_leads_on() {
        for status in Status::ALL {
            let leads_on: Vec<_> = Event::ALL
                .into_iter()
                .filter(|e| status.next(*e).is_ok())
                .collect();
            assert_eq!(
                status.is_final(),
                leads_on == [Event::Retry],
                "{status}: {leads_on:?}"
            );
        }
    }

    #[test]
    fn words_round_trip() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>(), Ok(status));
        }
        assert!("running".parse::<Status>().is_err());
    }
}
