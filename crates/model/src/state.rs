//! Statuses of a job and the table of legal changes. The broker's scripts refuse the same changes; a conformance case
//! tests every pair.

use std::fmt;
use std::str::FromStr;

/// Status of a job, in Hero's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waits in a queue, or for a retry.
    Dispatched,
    /// Waits for prerequisites (a word of contexts). A record of Hero has `dispatched` instead, because its readers
    /// know no other word; a separate field has the number of prerequisites.
    WaitingForPrerequisites,
    /// Claimed by a worker.
    Started,
    /// Ended with a result.
    Finished,
    /// Ended without a result.
    Error,
}

/// State of a job for people: the words of lists and filters. A [`Status`] does not tell all of them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Is in its queue.
    Queued,
    /// Waits for its time, or for a retry.
    Delayed,
    /// Waits for prerequisites.
    Waiting,
    /// Claimed by a worker.
    Running,
    /// Claimed by a worker, which has a request to cancel it.
    Cancelling,
    /// Ended with a result.
    Finished,
    /// Ended without a result.
    Failed,
    /// Ended by a cancellation.
    Cancelled,
}

/// An event in the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker claims the job under a lease.
    Claim,
    /// The owner of the lease reports a result.
    Finish,
    /// The owner of the lease reports a failure, and no retry is left.
    Fail,
    /// The owner of the lease reports a failure, and the job is retried.
    Requeue,
    /// The owner of the lease releases the job.
    Release,
    /// The lease expired without a report.
    Reclaim,
    /// A client cancels the job.
    Cancel,
    /// A client retries an ended job.
    Retry,
    /// The last prerequisite has ended as required.
    Ready,
    /// A prerequisite failed, or the time for prerequisites is over.
    Fault,
}

/// A change of status that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {status} cannot {event:?}")]
pub struct IllegalTransition {
    /// Status of the job.
    pub status: Status,
    /// The event.
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

    /// Returns the status after `event`.
    ///
    /// # Errors
    /// The event is not allowed in this status. Nothing changes then.
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

    /// Returns whether the status is final unless a client retries the job.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }

    /// Returns the word in the record.
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

impl State {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Delayed,
        Self::Waiting,
        Self::Running,
        Self::Cancelling,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delayed => "delayed",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status in the record of a job in this state.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Queued | Self::Delayed => Status::Dispatched,
            Self::Waiting => Status::WaitingForPrerequisites,
            Self::Running | Self::Cancelling => Status::Started,
            Self::Finished => Status::Finished,
            Self::Failed | Self::Cancelled => Status::Error,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Status> for State {
    /// Returns the state as far as the status alone tells it: a delayed job is queued, a cancelled one has failed.
    fn from(status: Status) -> Self {
        match status {
            Status::Dispatched => Self::Queued,
            Status::WaitingForPrerequisites => Self::Waiting,
            Status::Started => Self::Running,
            Status::Finished => Self::Finished,
            Status::Error => Self::Failed,
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

/// An unknown status.
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
