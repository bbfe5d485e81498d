//! What can go wrong between a verb and the data.

use meshwork_model::batch::InvalidBatch;
use meshwork_model::job::Invalid;
use meshwork_model::keys::context::{ElementError, InvalidPrerequisite};
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::ScheduleError;

/// Why a verb did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job was refused; nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The id of a job is no key of the context; nothing was written.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A job of a context is to wait for what cannot be; nothing was written.
    #[error(transparent)]
    Prerequisite(#[from] InvalidPrerequisite),
    /// The call is for contexts.
    #[error("this call is for contexts, and these keys are of none")]
    NoContext,
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
    /// The same, where the server does not say which of several keys it is. What a script did before it met the key stays.
    #[error(
        "{verb} failed: a key that it works on holds a value of another kind than it needs, one of {keys}: see what each \
         of them holds, and rename or delete the wrong one"
    )]
    WrongKind {
        /// The verb.
        verb: &'static str,
        /// The keys that the call works on and that are there, each with what it holds.
        keys: String,
    },
    /// The server's access rules do not let this user make the call. What a script did before it met them stays.
    #[error(
        "{verb} failed: the server's ACL does not let this user do it: {}; it works on {keys}. The rights that \
         are needed stand in docs/operations.md, \"An ACL user\" ({source})",
        may_not(lacks)
    )]
    Denied {
        /// The verb.
        verb: &'static str,
        /// The keys that the call works on.
        keys: String,
        /// The commands that this user may not say of them, if that is known.
        lacks: Vec<&'static str>,
        /// What the server said.
        source: redis::RedisError,
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
    /// A field of a script's answer is missing or of another type.
    #[error("{verb}: the field `{field}` of the answer cannot be read: {why}")]
    Field {
        /// The verb.
        verb: &'static str,
        /// The field.
        field: &'static str,
        /// Why not.
        why: String,
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
    /// What the server said to a call of these keys, where nothing more can be asked.
    pub(crate) fn of_keys(verb: &'static str, keys: &[String], source: redis::RedisError) -> Self {
        if is_denied(&source) {
            let (keys, lacks) = (keys.join(", "), Vec::new());
            return Self::Denied {
                verb,
                keys,
                lacks,
                source,
            };
        }
        match (source.code(), keys) {
            (Some("WRONGTYPE"), [key]) => Self::WrongType {
                verb,
                key: key.clone(),
            },
            (Some("WRONGTYPE"), [_, ..]) => Self::WrongKind {
                verb,
                keys: keys.join(", "),
            },
            _ => Self::Call { verb, source },
        }
    }

    /// What the server said to the first of several commands that it did not take.
    pub(crate) fn of_pipeline(
        verb: &'static str,
        pipeline: &redis::Pipeline,
        source: redis::RedisError,
    ) -> Self {
        let all = source.clone().into_server_errors();
        let Some((at, error)) = all.and_then(|all| all.first().cloned()) else {
            return Self::Call { verb, source };
        };
        let keys = pipeline.cmd_iter().nth(at).map(keys_of);
        Self::of_keys(verb, &keys.unwrap_or_default(), error.into())
    }

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

    /// Whether the server is there and does not take the call, and the message says what to do about that.
    #[must_use]
    pub fn says_what_to_do(&self) -> bool {
        matches!(self, Self::Call { source, .. } if !hint(source).is_empty())
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
        Some("NOPERM") => {
            " (its ACL does not let this user: the rights that are needed stand in docs/operations.md, \"An ACL user\")"
        }
        Some("READONLY") => {
            " (it is a replica: give the address of the primary, or redis+sentinel:// to find it)"
        }
        Some("MISCONF") => {
            " (it cannot save to its disk, and takes no writes: look into its log, and free or mend the disk)"
        }
        _ => "",
    }
}

/// The keys of a command that has any: what it may fail over.
pub(crate) fn keys_of(cmd: &redis::Cmd) -> Vec<String> {
    let args: Vec<_> = cmd.args_iter().collect();
    let word = |at: usize| match args.get(at) {
        Some(redis::Arg::Simple(word)) => Some(String::from_utf8_lossy(word).into_owned()),
        _ => None,
    };
    let name = word(0).unwrap_or_default();
    let places = match name.as_str() {
        "CLIENT" | "PING" | "EVAL" | "EVALSHA" | "SCAN" => 0..0,
        "XGROUP" | "XINFO" => 2..3,
        "BLMOVE" | "LMOVE" => 1..3,
        "BLMPOP" => {
            let keys = word(2).and_then(|keys| keys.parse().ok()).unwrap_or(0);
            3..3 + usize::min(keys, MOST_NAMED)
        }
        "XREAD" | "XREADGROUP" => {
            let streams = (0..args.len()).find(|at| word(*at).as_deref() == Some("STREAMS"));
            streams.map_or(0..0, |at| at + 1..at + 2)
        }
        _ => 1..2,
    };
    places.filter_map(word).collect()
}

/// What a user may not do, in words.
fn may_not(lacks: &[&str]) -> String {
    match lacks {
        [] => "it may not say that, or not of these keys".to_owned(),
        _ => format!("it may not say {}", lacks.join(", ")),
    }
}

/// The most keys that an error names: a call of many jobs has thousands.
pub(crate) const MOST_NAMED: usize = 16;

/// What a server says whose access rules forbid what a script does: it has no code for that.
const DENIED_WORDS: [&str; 2] = [
    "The user executing the script can't",
    "ACL failure in script",
];

/// Whether a server's access rules forbid the call.
pub(crate) fn is_denied(error: &redis::RedisError) -> bool {
    match error.code() {
        Some("NOPERM") => true,
        Some("ERR") => {
            let detail = error.detail().unwrap_or_default();
            DENIED_WORDS.iter().any(|words| detail.contains(words))
        }
        _ => false,
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
