//! Errors of the verbs.

use meshwork_model::batch::InvalidBatch;
use meshwork_model::job::Invalid;
use meshwork_model::keys::context::{ElementError, InvalidPrerequisite};
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::ScheduleError;
use meshwork_model::time::duration_of;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job was refused; nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The id of a job is not a key of the context; nothing was written.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A prerequisite of a context's job is not valid; nothing was written.
    #[error(transparent)]
    Prerequisite(#[from] InvalidPrerequisite),
    /// The verb requires keys of a context.
    #[error("this call is for contexts, and these keys are of none")]
    NoContext,
    /// The keys of actors and contexts that a single server had cannot be moved to where a Cluster needs them.
    #[error(
        "the keys of actors and contexts must move under the hash tag {{mw}} of this Cluster, which this user may not do: run \
         `meshwork context list` once as a user with DUMP, PTTL, RESTORE, UNLINK and WATCH on all keys ({0})"
    )]
    NotMoved(redis::RedisError),
    /// The schedule was refused; nothing was written.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// All slots of the schedule are past; nothing was written.
    #[error("schedule {name} would never run: its last slot is over")]
    ScheduleOver {
        /// The schedule.
        name: ScheduleName,
    },
    /// Other clients change the schedule all the time, or one of its slots cannot be decided.
    #[error(
        "schedule {name} is not changed: {why}; repeat the command later, or remove the schedule first"
    )]
    ScheduleBusy {
        /// The schedule.
        name: ScheduleName,
        /// The reason.
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
    /// A call has too many items.
    #[error("{verb} takes at most {most} items in one call, not {given}")]
    TooMany {
        /// The verb.
        verb: &'static str,
        /// Greatest number of items.
        most: usize,
        /// Number of items in the call.
        given: usize,
    },
    /// The server did not answer, or answered with an error. If the connection broke, it is unknown whether the call
    /// took effect. Repeat the call: every verb can be repeated.
    #[error("{verb} failed: {}{}", words(source), hint(source))]
    Call {
        /// The verb.
        verb: &'static str,
        /// Error of the connection or the server.
        source: redis::RedisError,
    },
    /// A key has a value of another type; nothing was changed.
    #[error("{verb} failed: the key {key} holds a value of another kind: rename or delete it")]
    WrongType {
        /// The verb.
        verb: &'static str,
        /// The key.
        key: String,
    },
    /// A key has a value of another type, and the server does not name the key. Changes that a script made before
    /// remain.
    #[error(
        "{verb} failed: a key that it works on holds a value of another kind than it needs, one of {keys}: see what each \
         of them holds, and rename or delete the wrong one"
    )]
    WrongKind {
        /// The verb.
        verb: &'static str,
        /// Existing keys of the call, each with the type of its value.
        keys: String,
    },
    /// The server's ACL does not permit the call. Changes that a script made before remain.
    #[error(
        "{verb} failed: the server's ACL does not let this user do it: {}; it works on {keys}. The needed rights \
         are in docs/operations.md, \"An ACL user\" ({source})",
        may_not(lacks)
    )]
    Denied {
        /// The verb.
        verb: &'static str,
        /// The keys that the call works on.
        keys: String,
        /// Commands that this user may not send for them, if known.
        lacks: Vec<&'static str>,
        /// Error of the server.
        source: redis::RedisError,
    },
    /// The limit of a queue is too high.
    #[error("a queue's limit is at most {max}, not {given}", max = crate::MAX_QUEUE_LIMIT)]
    QueueLimit {
        /// The requested limit.
        given: u64,
    },
    /// A setting of a queue is not valid; nothing was changed.
    #[error(transparent)]
    Setting(#[from] meshwork_model::queue::InvalidSetting),
    /// A script returned an unexpected answer.
    #[error("{verb} answered {answer:?}, which no version of it does")]
    Answer {
        /// The verb.
        verb: &'static str,
        /// The answer.
        answer: String,
    },
    /// A field of a script's answer is missing or has another type.
    #[error("{verb}: the field `{field}` of the answer cannot be read: {why}")]
    Field {
        /// The verb.
        verb: &'static str,
        /// The field.
        field: &'static str,
        /// The reason.
        why: String,
    },
    /// Jobs, or a change in a context, are stored, but fewer replicas than required have confirmed: a failover may lose
    /// them.
    #[error(
        "{what} stored, but only {confirmed} of {wanted} replicas have confirmed it within {}: {remedy}",
        duration_of(*timeout)
    )]
    NotReplicated {
        /// Description of the jobs or of the change.
        what: String,
        /// Next action of the caller.
        remedy: &'static str,
        /// Number of replicas that have confirmed.
        confirmed: u32,
        /// Required number of replicas.
        wanted: u32,
        /// Time for which the call waited.
        timeout: std::time::Duration,
    },
}

impl Error {
    /// Returns whether the server's ACL forbids the call.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Denied { .. } => true,
            Self::Call { source, .. } => is_denied(source),
            _ => false,
        }
    }

    /// Returns the error of a call for these keys, without further queries.
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

    /// Returns the error of the first failed command of a pipeline.
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

    /// Returns the error of a separate connection that could not be opened.
    pub(crate) fn connect(source: redis::RedisError) -> Self {
        Self::Call {
            verb: "connect",
            source,
        }
    }

    /// Returns the error of a call that timed out. It is unknown whether the call took effect.
    #[must_use]
    pub fn timed_out(verb: &'static str) -> Self {
        Self::Call {
            verb,
            source: timed_out(),
        }
    }

    /// Returns whether a Cluster refused the call, since the keys of its slot are moving to another node.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        matches!(self, Self::Call { source, .. } if moves(source))
    }

    /// Returns whether the server had no memory for the call.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.code() == Some("OOM"))
    }

    /// Returns whether the server refused the call with a message that has a remedy.
    #[must_use]
    pub fn says_what_to_do(&self) -> bool {
        matches!(self, Self::Call { source, .. } if !hint(source).is_empty())
    }

    /// Returns whether the server is a replica, which takes no writes.
    #[must_use]
    pub fn is_of_replica(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.code() == Some("READONLY"))
    }

    /// Returns whether the connection is unusable: it broke, or its server no longer has the data.
    #[must_use]
    pub fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Call { source, .. } if is_elsewhere(source)
            || source.is_io_error()
            || source.is_unrecoverable_error())
    }

    /// Returns whether the server did not answer: the connection broke, or the time was over.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Call { source, .. } if source.is_io_error()
            || source.is_timeout()
            || source.is_connection_dropped())
    }

    /// Returns whether a worker repeats the call: it may succeed later, also since somebody restores a right. A key or
    /// a channel that only this job needs does not delay the reports of others.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        match self {
            Self::Denied { source, .. } => !is_of_one_job(source),
            _ => self.is_temporary(),
        }
    }

    /// Returns whether a key of the call has a value of another type than the call needs.
    #[must_use]
    pub const fn is_wrong_type(&self) -> bool {
        matches!(self, Self::WrongType { .. } | Self::WrongKind { .. })
    }

    /// Returns whether the same call may succeed later: the connection broke, the server is loading, busy, full or
    /// changing roles, or replicas are late.
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

/// Returns whether the server does not have the command.
pub(crate) fn is_unknown_command(source: &redis::RedisError) -> bool {
    let detail = source.detail().unwrap_or_default();
    detail.starts_with("unknown command")
}

/// Returns whether the server does not have a command that a script sends, which it does not name.
pub(crate) fn lacks_command(source: &redis::RedisError) -> bool {
    // The second is that of a check of rights.
    const WORDS: [&str; 2] = [
        "Unknown Redis command called from script",
        "Invalid command passed to redis.acl_check_cmd",
    ];
    let detail = source.detail().unwrap_or_default();
    WORDS.iter().any(|words| detail.contains(words))
}

/// Returns the message of the server. A command that it does not have is named, without its arguments.
pub(crate) fn words(source: &redis::RedisError) -> String {
    let detail = source.detail().unwrap_or_default();
    let name = detail
        .split(['\'', '`'])
        .nth(1)
        .filter(|_| is_unknown_command(source));
    match name {
        Some(name) => format!(
            "the server does not have the command {}: remove rename-command from its configuration",
            name.to_uppercase()
        ),
        None if lacks_command(source) => {
            "the server does not have a command of a script: `meshwork doctor` names it".to_owned()
        }
        None => source.to_string(),
    }
}

/// Returns the remedy for an error of the server, if known.
fn hint(source: &redis::RedisError) -> &'static str {
    match source.code() {
        _ if moves(source) => {
            " (it is moving to another node, and keys are on both: repeat the call after the move; `redis-cli --cluster fix` \
             ends a move that was left half-way)"
        }
        Some("OOM") => " (its memory is full: raise maxmemory, or delete what is not needed)",
        Some("NOPERM") => {
            " (its ACL does not let this user: the needed rights are in docs/operations.md, \"An ACL user\")"
        }
        Some("READONLY") => {
            " (it is a replica: give the address of the primary, or redis+sentinel:// to find it)"
        }
        Some("CLUSTERDOWN") => {
            " (the cluster serves no slot, or not this one: `redis-cli --cluster check` names the reason)"
        }
        Some("MOVED") => {
            " (nodes disagree about the owner of the slot: `redis-cli --cluster check` names them)"
        }
        Some("MISCONF") => {
            " (it cannot save to its disk, and takes no writes: look into its log, and free or mend the disk)"
        }
        _ => "",
    }
}

/// Returns the keys of a command.
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

/// Describes missing rights.
fn may_not(lacks: &[&str]) -> String {
    match lacks {
        [] => "it may not send this command, or not for these keys".to_owned(),
        _ => format!("it may not send {}", lacks.join(", ")),
    }
}

/// Greatest number of keys in an error: a call with many jobs has thousands.
pub(crate) const MOST_NAMED: usize = 16;

/// Messages of servers whose ACL forbids a command of a script. They have no code of their own.
const DENIED_WORDS: [&str; 2] = [
    "The user executing the script can't",
    "ACL failure in script",
];

/// Parts of these messages if the user may send the command, but not for this key or channel.
const OF_ONE_JOB: [&str; 4] = ["a key", "of the keys", "a channel", "the channel"];

/// Returns whether a script may send its command, but not for a key or a channel. Each script checks its commands with a
/// key of all jobs first, so that only the key or channel of one job is meant.
fn is_of_one_job(error: &redis::RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    let says = |all: &[&str]| all.iter().any(|words| detail.contains(words));
    says(&DENIED_WORDS) && says(&OF_ONE_JOB)
}

/// Returns whether the server's ACL forbids the call.
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

/// Passes on the first error of a pipeline for which the user lacks a right. Other errors are about the types of keys.
pub(crate) fn pass_denied<T>(
    verb: &'static str,
    answers: &[redis::RedisResult<T>],
) -> Result<(), Error> {
    let mut errors = answers.iter().filter_map(|answer| answer.as_ref().err());
    match errors.find(|error| is_denied(error)) {
        Some(denied) => Err(Error::of_keys(verb, &[], denied.clone())),
        None => Ok(()),
    }
}

/// Returns whether a server refused a call because another one has the data.
pub(crate) fn is_elsewhere(error: &redis::RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MOVED"))
}

/// Codes of errors that pass by themselves.
const PASSING: [&str; 14] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOREPLICAS",
    // A client flushed the scripts between the two steps of a call.
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
    "UNKILLABLE",
];

/// Messages of such errors that have no code: a script whose keys are moving to another node of the cluster, and a
/// server with too many clients.
const PASSING_WORDS: [&str; 2] = [NON_LOCAL, "max number of clients reached"];
const NON_LOCAL: &str = "attempted to access a non local key";

/// Returns whether a node of a cluster refused a call, since the keys of its slot are moving to another node.
pub(crate) fn moves(error: &redis::RedisError) -> bool {
    match error.code() {
        Some("ASK" | "TRYAGAIN") => true,
        Some("ERR") => error
            .detail()
            .is_some_and(|detail| detail.contains(NON_LOCAL)),
        _ => false,
    }
}

/// Returns whether a server refused a call for a temporary reason.
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

/// Returns the error of a connection that timed out.
pub(crate) fn timed_out() -> redis::RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
