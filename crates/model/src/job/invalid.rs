//! Reasons why a job is refused.

use super::{EnvTooLarge, limits};
use crate::name::JobId;
use crate::sandbox::InvalidSandbox;
use crate::time::duration;

/// The reason why a job was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The script is empty.
    #[error("job {id}: the script is empty")]
    EmptyScript {
        /// The job.
        id: JobId,
    },
    /// A part of the job is over its limit.
    #[error("job {id}: the {what} takes {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The job.
        id: JobId,
        /// Name of the part.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// Greatest allowed size in bytes.
        limit: usize,
    },
    /// The environment is over its limit.
    #[error("job {id}: {source}")]
    EnvTooLarge {
        /// The job.
        id: JobId,
        /// The size.
        source: EnvTooLarge,
    },
    /// A part has a NUL byte, which environments and languages do not accept.
    #[error("job {id}: the {what} contains a NUL byte")]
    Nul {
        /// The job.
        id: JobId,
        /// Name of the part.
        what: &'static str,
    },
    /// The path is not valid for a log file.
    #[error("job {id}: the log_path {path:?} is not possible: {fault}")]
    LogPath {
        /// The job.
        id: JobId,
        /// The path.
        path: String,
        /// The fault.
        fault: &'static str,
    },
    /// The timeout is out of range.
    #[error("job {id}: a timeout of {} is not possible: give 1 s to {}", duration(seconds.saturating_mul(1000)), duration(limits::MAX_TIMEOUT * 1000))]
    Timeout {
        /// The job.
        id: JobId,
        /// The requested timeout, in seconds.
        seconds: u64,
    },
    /// There are too many retries.
    #[error("job {id}: {retries} retries are too many: at most {max}", max = limits::MAX_RETRIES)]
    Retries {
        /// The job.
        id: JobId,
        /// The requested number.
        retries: u32,
    },
    /// The requested sandbox has a value out of range.
    #[error("job {id}: {source}")]
    Sandbox {
        /// The job.
        id: JobId,
        /// The fault.
        source: InvalidSandbox,
    },
    /// There are too many tags.
    #[error("job {id}: {count} tags are too many: at most {max}", max = limits::MAX_TAGS)]
    Tags {
        /// The job.
        id: JobId,
        /// The number of tags.
        count: usize,
    },
    /// There are too many prerequisites.
    #[error("job {id}: {count} prerequisites are too many: at most {max}", max = limits::MAX_PREREQUISITES)]
    Prerequisites {
        /// The job.
        id: JobId,
        /// The number of prerequisites.
        count: usize,
    },
    /// A name that no result can have.
    #[error(
        "job {id}: {name:?} cannot be the name of a prerequisite's result: give 1 to {max} letters, digits, `_`, `-` or `.`",
        max = limits::MAX_INPUT_NAME
    )]
    InputName {
        /// The job.
        id: JobId,
        /// The name.
        name: String,
    },
    /// A name for the result of a job that is no prerequisite.
    #[error("job {id}: the name {name} is for job {of}, which is none of its prerequisites")]
    InputOf {
        /// The job.
        id: JobId,
        /// The name.
        name: String,
        /// The other job.
        of: JobId,
    },
    /// The job is its own prerequisite.
    #[error("job {id} cannot be its own prerequisite")]
    OwnPrerequisite {
        /// The job.
        id: JobId,
    },
    /// A time, a key or a unique name is not valid.
    #[error("job {id}: {fault}")]
    Option {
        /// The job.
        id: JobId,
        /// The fault.
        fault: String,
    },
    /// There is a fallback, but no target instance.
    #[error("job {id}: a fallback is for a job that is sent to one instance; name the instance")]
    Fallback {
        /// The job.
        id: JobId,
    },
    /// The backoff is too long.
    #[error("job {id}: a pause of {} before a retry is too long: at most {}", duration(*ms), duration(limits::MAX_BACKOFF_MS))]
    Backoff {
        /// The job.
        id: JobId,
        /// The requested backoff, in milliseconds.
        ms: u64,
    },
    /// The name of a variable is not valid in an environment.
    #[error("job {id}: {name:?} cannot be the name of an environment variable")]
    EnvName {
        /// The job.
        id: JobId,
        /// The name.
        name: String,
    },
    /// The value of a variable is not valid in an environment.
    #[error("job {id}: the value of environment variable {name} contains a NUL byte")]
    EnvValue {
        /// The job.
        id: JobId,
        /// The variable.
        name: String,
    },
}
