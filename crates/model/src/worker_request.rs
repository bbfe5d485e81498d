//! Requests to one running worker.

use std::fmt;

/// A request to a running worker, of any protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerRequest {
    /// The worker takes no more jobs, and finishes those that run.
    Quiet,
    /// The worker shuts down gracefully.
    Stop,
}

impl WorkerRequest {
    /// All requests.
    pub const ALL: [Self; 2] = [Self::Quiet, Self::Stop];

    /// Returns the word for the request, also in its key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Stop => "stop",
        }
    }

    /// Returns the last part of the key of a request.
    pub(crate) fn name(self, worker: &str) -> String {
        format!("request:{self}:{worker}")
    }
}

impl fmt::Display for WorkerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
