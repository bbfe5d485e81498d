//! The outcome of one run of a job, as data that a runner returns to the worker and the worker sends to the broker.

use std::time::Duration;

use crate::cancellation::CANCELLED_RUN;
use crate::job::limits;
use crate::secret::Secrets;

/// The outcome and the output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The result, or the failure.
    pub result: Result<Vec<u8>, Failure>,
    /// Last part of its stdout.
    pub stdout: Vec<u8>,
    /// Last part of its stderr.
    pub stderr: Vec<u8>,
}

/// The failure of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the failure, which decides whether the job is retried.
    pub kind: FailureKind,
    /// Message of one line for people: `timeout`, `ValueError: …`.
    pub message: String,
    /// Position in the script, in the language's own format.
    pub traceback: Option<String>,
    /// Requested pause before the next run. For a retry it replaces the job's backoff. At most
    /// [`limits::MAX_VERDICT_DELAY`].
    pub after: Option<Duration>,
    /// True if the host lacks what every run of the type needs, as its interpreter: the worker claims no more of these
    /// jobs until its checks find it.
    pub is_of_host: bool,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The script or handler failed. The job is retried if it has retries left.
    Script,
    /// The run exceeded the job's timeout. The job is retried if it has retries left.
    Timeout,
    /// The run exceeded a limit of its sandbox. The job is retried if it has retries left.
    Limit,
    /// No run can succeed (a syntax error, a missing runtime): no retry.
    Permanent,
    /// The job was cancelled while it ran: no retry.
    Stopped,
    /// The run requested a snooze, which uses no attempt.
    Snoozed,
    /// The run requested to discard the job: no retry, and no dead letter.
    Discarded,
    /// The worker could not start the run: it had no folder, descriptor, process or interpreter for it. The worker
    /// releases the job without counting an attempt.
    NotStarted,
}

impl FailureKind {
    /// Returns the word for the kind, in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Permanent => "permanent",
            Self::Stopped => "stopped",
            Self::Snoozed => "snoozed",
            Self::Discarded => "discarded",
            Self::NotStarted => "not_started",
        }
    }

    /// Returns whether a retry may have another outcome.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::Script | Self::Timeout | Self::Limit | Self::NotStarted
        )
    }
}

impl Failure {
    /// Returns a failure without a traceback.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            traceback: None,
            after: None,
            is_of_host: false,
        }
    }

    /// Returns the same failure for a host that lacks what every run of the type needs.
    #[must_use]
    pub fn of_host(mut self) -> Self {
        self.is_of_host = true;
        self
    }

    /// Returns the same failure with a requested pause before the next run.
    #[must_use]
    pub fn after(mut self, pause: Duration) -> Self {
        self.after = Some(pause.min(limits::MAX_VERDICT_DELAY));
        self
    }

    /// Returns the failure of a run that exceeded its timeout, with Hero's word for it.
    #[must_use]
    pub fn timeout() -> Self {
        Self::new(FailureKind::Timeout, "timeout")
    }

    /// Returns the failure of a cancelled run.
    #[must_use]
    pub fn stopped() -> Self {
        Self::new(FailureKind::Stopped, CANCELLED_RUN)
    }
}

impl Report {
    /// Returns the outcome of a successful run.
    #[must_use]
    pub fn done(output: impl Into<Vec<u8>>) -> Self {
        Self {
            result: Ok(output.into()),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Returns the outcome of a failed run.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Returns the same report with masked secrets in the parts for people. The result is not masked, because
    /// programs may continue with it.
    #[must_use]
    pub fn masked(mut self, secrets: &Secrets) -> Self {
        if secrets.is_empty() {
            return self;
        }
        for log in [&mut self.stdout, &mut self.stderr] {
            *log = secrets.mask_bytes(log).into_owned();
        }
        if let Err(failure) = &mut self.result {
            failure.message = secrets.mask(&failure.message).into_owned();
            failure.traceback = failure
                .traceback
                .take()
                .map(|text| secrets.mask(&text).into_owned());
        }
        self
    }

    /// Returns the same report within [`limits`]. Logs and messages keep their last part; a result that is too large
    /// becomes a failure.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        keep_end(&mut self.stdout, limits::MAX_LOG);
        keep_end(&mut self.stderr, limits::MAX_LOG);
        self.result = match self.result {
            Ok(output) if output.len() > limits::MAX_OUTPUT => Err(Failure::new(
                FailureKind::Permanent,
                format!(
                    "the result takes {} bytes, the limit is {}",
                    output.len(),
                    limits::MAX_OUTPUT
                ),
            )),
            Ok(output) => Ok(output),
            Err(mut failure) => {
                keep_start(&mut failure.message, limits::MAX_ERROR);
                if let Some(traceback) = &mut failure.traceback {
                    keep_start(traceback, limits::MAX_ERROR);
                }
                Err(failure)
            }
        };
        self
    }
}

fn keep_end(bytes: &mut Vec<u8>, most: usize) {
    let over = bytes.len().saturating_sub(most);
    bytes.drain(..over);
}

fn keep_start(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

/// Reasons of dead letters. No retry was left: `failed`, `timeout`, `limit` (of the sandbox). No retry could help: `permanent`, `snoozed` (too
/// often). The job killed its workers: `poison`. Its queue is no list: `queue`. Its record cannot be read: `unreadable`.
pub const DEAD_REASONS: [&str; 8] = [
    "failed",
    "timeout",
    "limit",
    "permanent",
    "snoozed",
    "poison",
    "queue",
    "unreadable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_cut_to_its_limits() {
        let mut report = Report::done(vec![0; limits::MAX_OUTPUT + 1]);
        report.stdout = [vec![1; 10], vec![2; limits::MAX_LOG]].concat();
        let report = report.bounded();
        assert_eq!(report.stdout, vec![2; limits::MAX_LOG]);
        let failure = report.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Permanent);
        assert!(failure.message.contains("16777217"), "{}", failure.message);
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let long = Failure::new(FailureKind::Script, "ä".repeat(limits::MAX_ERROR));
        let cut = Report::failed(long).bounded().result.unwrap_err().message;
        assert!(cut.len() <= limits::MAX_ERROR && cut.chars().all(|c| c == 'ä'));
    }

    #[test]
    fn secrets_go_from_all_but_the_result() {
        let secrets = Secrets::new(["hunter22"]);
        let said = b"with hunter22".to_vec();
        let mut done = Report::done(said.clone());
        done.stdout.clone_from(&said);
        done.stderr = said;
        let done = done.masked(&secrets);
        assert_eq!(done.result.unwrap(), b"with hunter22");
        assert_eq!(
            (&done.stdout[..], &done.stderr[..]),
            (&b"with ***"[..], &b"with ***"[..])
        );
        let mut failure = Failure::new(FailureKind::Script, "no hunter22");
        failure.traceback = Some("line 1: hunter22".to_owned());
        let failure = Report::failed(failure).masked(&secrets).result.unwrap_err();
        assert_eq!(failure.message, "no ***");
        assert_eq!(failure.traceback.as_deref(), Some("line 1: ***"));
    }
}
