//! What can go wrong between a verb and the data.

use meshwork_model::batch::InvalidBatch;
use meshwork_model::job::Invalid;
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::ScheduleError;

/// Why a verb did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job was refused; nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The schedule was refused; nothing was written.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// All slots of the schedule are over; nothing was written.
    #[error("schedule {name} would never run: its last slot is over")]
    ScheduleOver {
        /// The schedule.
        name: ScheduleName,
    },
    /// Others change the schedule all the time, or a slot of it cannot be decided.
    #[error(
        "schedule {name} is not changed: {why}; say it again later, or remove the schedule first"
    )]
    ScheduleBusy {
        /// The schedule.
        name: ScheduleName,
        /// Why not.
        why: String,
    },
    /// The batch was refused; nothing was written.
    #[error(transparent)]
    InvalidBatch(#[from] InvalidBatch),
    /// The job of Bananas was refused; nothing was written.
    #[error(transparent)]
    InvalidBananas(meshwork_model::bananas::InvalidJob),
    /// The cron schedule of Bananas' jobs was refused; nothing was written.
    #[error(transparent)]
    InvalidCron(meshwork_model::bananas::InvalidCron),
    /// Too much for one call.
    #[error("{verb} takes at most {most} items in one call, not {given}")]
    TooMany {
        /// The verb.
        verb: &'static str,
        /// The bound.
        most: usize,
        /// What was asked for.
        given: usize,
    },
    /// The server did not answer, or answered with an error. If the connection broke, whether the call
    /// took effect is not known: say it again, each verb can be repeated.
    #[error("{verb} failed: {source}{}", hint(source))]
    Call {
        /// The verb.
        verb: &'static str,
        /// What the connection or the server said.
        source: redis::RedisError,
    },
    /// Something else stands where this was to go or come from; nothing was changed.
    #[error("{verb} failed: the key {key} holds a value of another kind: rename or delete it")]
    WrongType {
        /// The verb.
        verb: &'static str,
        /// The key.
        key: String,
    },
    /// No server holds so many ids.
    #[error("a queue's limit is at most {max}, not {given}", max = crate::MAX_QUEUE_LIMIT)]
    QueueLimit {
        /// What was asked for.
        given: u64,
    },
    /// A setting of a queue that cannot be; nothing was changed.
    #[error(transparent)]
    Setting(#[from] meshwork_model::queue::InvalidSetting),
    /// A script answered what it never should.
    #[error("{verb} answered {answer:?}, which no version of it does")]
    Answer {
        /// The verb.
        verb: &'static str,
        /// The answer.
        answer: String,
    },
    /// The jobs are stored, but not yet on as many replicas as were asked for: a failover may lose them.
    /// Say the call again; what is stored stays as it is.
    #[error(
        "{what} stored, but only {confirmed} of {wanted} replicas have confirmed it within {timeout:?}: \
         say it again, it is not stored twice"
    )]
    NotReplicated {
        /// The jobs, in words.
        what: String,
        /// How many replicas have them.
        confirmed: u32,
        /// How many should.
        wanted: u32,
        /// How long they were waited for.
        timeout: std::time::Duration,
    },
}

impl Error {
    /// A connection of its own could not be made.
    pub(crate) fn connect(source: redis::RedisError) -> Self {
        Self::Call {
            verb: "connect",
            source,
        }
    }

    /// The call was given up because it took too long; whether it took effect is not known.
    #[must_use]
    pub fn timed_out(verb: &'static str) -> Self {
        Self::Call {
            verb,
            source: timed_out(),
        }
    }

    /// Whether the server has no memory left for what was to be stored.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.code() == Some("OOM"))
    }

    /// Whether the connection that was called over is of no more use: it broke, or leads to a server that has the
    /// data no more.
    #[must_use]
    pub fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Call { source, .. } if is_elsewhere(source)
            || source.is_io_error()
            || source.is_unrecoverable_error())
    }

    /// Whether the same call may succeed a little later: the connection broke, or the server is loading,
    /// busy, full or changing roles, or replicas are late.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Call { source, .. } => {
                source.is_io_error()
                    || source.is_timeout()
                    || source.is_connection_dropped()
                    || passes(source)
            }
            Self::NotReplicated { .. } => true,
            _ => false,
        }
    }
}

/// What is to be done about an answer of a server, if that is known.
fn hint(source: &redis::RedisError) -> &'static str {
    match source.code() {
        Some("OOM") => " (its memory is full: raise maxmemory, or delete what is not needed)",
        _ => "",
    }
}

/// Whether a server refused a call since another one has the data.
pub(crate) fn is_elsewhere(error: &redis::RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MOVED"))
}

/// What a server says that takes the same call a little later.
const PASSING: [&str; 14] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOREPLICAS",
    // Somebody made the server forget its scripts between the two steps of a call.
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
    "UNKILLABLE",
];

/// The same where the server has no code for it: a script whose keys are on their way to another node of the
/// cluster, and a server with too many clients.
const PASSING_WORDS: [&str; 2] = [
    "attempted to access a non local key",
    "max number of clients reached",
];

/// Whether a server refused a call for a reason that passes.
pub(crate) fn passes(error: &redis::RedisError) -> bool {
    match error.code() {
        Some("ERR") => {
            let detail = error.detail().unwrap_or_default();
            PASSING_WORDS.iter().any(|words| detail.contains(words))
        }
        Some(code) => PASSING.contains(&code),
        None => false,
    }
}

/// What a connection says that took too long.
pub(crate) fn timed_out() -> redis::RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
