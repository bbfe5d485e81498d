//! How one run of a job ended, as data: what a runner hands to the worker and the worker to the broker.

use std::time::Duration;

use crate::job::limits;
use crate::secret::Secrets;

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub result: Result<Vec<u8>, Failure>,
    /// The end of what it wrote to stdout.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to stderr.
    pub stderr: Vec<u8>,
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure; it decides whether the job runs again.
    pub kind: FailureKind,
    /// One line for people: `timeout`, `ValueError: …`.
    pub message: String,
    /// Where in the script it happened, as the language says it.
    pub traceback: Option<String>,
    /// The pause before the next run, where the run asked for one: of a retry instead of the job's backoff, and of a
    /// snooze. At most [`limits::MAX_VERDICT_DELAY`].
    pub after: Option<Duration>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The script or handler failed: it runs again if a retry is left.
    Script,
    /// The run took longer than the job's timeout: it runs again if a retry is left.
    Timeout,
    /// It cannot succeed however often it runs (a syntax error, a missing runtime): no retry.
    Permanent,
    /// Somebody asked for it to be stopped while it ran: no retry.
    Stopped,
    /// It asked to be run later, which uses no attempt.
    Snoozed,
    /// It asked to be dropped: no retry, and no dead letter.
    Discarded,
}

impl FailureKind {
    /// The kind as a word, in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Timeout => "timeout",
            Self::Permanent => "permanent",
            Self::Stopped => "stopped",
            Self::Snoozed => "snoozed",
            Self::Discarded => "discarded",
        }
    }

    /// Whether another run may end differently.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(self, Self::Script | Self::Timeout)
    }
}

impl Failure {
    /// A failure without a traceback.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            traceback: None,
            after: None,
        }
    }

    /// The same failure, the next run being due after this pause.
    #[must_use]
    pub fn after(mut self, pause: Duration) -> Self {
        self.after = Some(pause.min(limits::MAX_VERDICT_DELAY));
        self
    }

    /// The run took longer than it may; Hero's word for it.
    #[must_use]
    pub fn timeout() -> Self {
        Self::new(FailureKind::Timeout, "timeout")
    }

    /// Somebody asked for the run to be stopped.
    #[must_use]
    pub fn stopped() -> Self {
        Self::new(FailureKind::Stopped, "stopped_by_request")
    }
}

impl Report {
    /// A run that ended well.
    #[must_use]
    pub fn done(output: impl Into<Vec<u8>>) -> Self {
        Self {
            result: Ok(output.into()),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// A run that did not.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// The same report without secrets in what people read. The result stays as it is: it is for whoever
    /// asked for the job, and may be what a program goes on with.
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

    /// The same report within [`limits`]: logs and messages keep their ends, a result that is too large
    /// becomes a failure that says so.
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
