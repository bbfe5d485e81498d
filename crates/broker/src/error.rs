//! What can go wrong between a verb and the data.

use meshwork_model::job::Invalid;

/// Why a verb did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job was refused; nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
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
    #[error("{verb} failed: {source}")]
    Call {
        /// The verb.
        verb: &'static str,
        /// What the connection or the server said.
        source: redis::RedisError,
    },
    /// A script answered what it never should.
    #[error("{verb} answered {answer:?}, which no version of it does")]
    Answer {
        /// The verb.
        verb: &'static str,
        /// The answer.
        answer: String,
    },
}

impl Error {
    /// The call was given up because it took too long; whether it took effect is not known.
    #[must_use]
    pub fn timed_out(verb: &'static str) -> Self {
        Self::Call {
            verb,
            source: timed_out(),
        }
    }

    /// Whether the same call may succeed a little later: the connection broke, or the server is loading,
    /// busy or changing roles.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        let Self::Call { source, .. } = self else {
            return false;
        };
        source.is_io_error()
            || source.is_timeout()
            || source.is_connection_dropped()
            || matches!(
                source.code(),
                Some(
                    "LOADING"
                        | "BUSY"
                        | "TRYAGAIN"
                        | "CLUSTERDOWN"
                        | "MASTERDOWN"
                        | "READONLY"
                        | "UNBLOCKED"
                        | "OOM"
                        | "MISCONF"
                )
            )
    }
}

/// What a connection says that took too long.
pub(crate) fn timed_out() -> redis::RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
