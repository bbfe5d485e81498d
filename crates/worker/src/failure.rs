//! Failure: the reason of a failed run, as it is stored and logged, for the workers of all protocols.

use meshwork_model::outcome::{Failure, FailureKind};

/// Greatest length of the end of a traceback, and of stderr, in the details of an error, in bytes. More belongs into a
/// log.
const MAX_PART: usize = 4 * 1024;
/// Greatest length of an error in a log line, in bytes: people read it, and collectors cut long lines.
const MAX_LOGGED: usize = 4 * 1024;

/// Target of its log lines, in filters as those of RUST_LOG.
const TARGET: &str = "meshwork::failure";

/// Reason of a failed run.
#[derive(Debug, Clone)]
pub struct Reason {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Error, for the job's caller.
    pub message: String,
    /// Ends of traceback and stderr, for operators; empty without both.
    pub detail: String,
}

impl Reason {
    /// Returns the reason of a failure, with the end of the run's stderr.
    pub(crate) fn of(failure: &Failure, stderr: &[u8]) -> Self {
        let mut parts = Vec::new();
        if let Some(traceback) = &failure.traceback {
            parts.push(end(traceback.trim_end()).to_owned());
        }
        let stderr = String::from_utf8_lossy(stderr);
        let stderr = stderr.trim_end();
        if !stderr.is_empty() {
            parts.push(format!("stderr:\n{}", end(stderr)));
        }
        Self {
            kind: failure.kind,
            message: failure.message.clone(),
            detail: parts.join("\n"),
        }
    }

    /// Returns error and details as one text of at most `most` bytes.
    pub fn whole(&self, most: usize) -> String {
        let error = match self.message.as_str() {
            "" => "no reason given",
            error => error,
        };
        if self.detail.is_empty() {
            return start(error, most).to_owned();
        }
        let room = most.saturating_sub(self.detail.len() + 1);
        let whole = format!("{}\n{}", start(error, room), self.detail);
        start(&whole, most).to_owned()
    }

    /// Logs the failed run in one line. The current span names job and attempt. A cancelled run has not failed.
    pub(crate) fn log(&self, runs_again: bool) {
        let (kind, error) = (self.kind.as_str(), start(&self.message, MAX_LOGGED));
        let detail = Some(self.detail.as_str()).filter(|detail| !detail.is_empty());
        match (self.kind, runs_again) {
            (FailureKind::Stopped, _) => tracing::info!(target: TARGET, error, "job stopped"),
            (FailureKind::Snoozed, true) => tracing::info!(target: TARGET, error, "job snoozed"),
            _ => tracing::warn!(target: TARGET, kind, error, detail, runs_again, "job failed"),
        }
    }
}

fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_PART))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str, traceback: Option<&str>) -> Failure {
        Failure {
            traceback: traceback.map(str::to_owned),
            ..Failure::new(FailureKind::Script, message)
        }
    }

    #[test]
    fn a_reason_is_the_error_and_the_ends_of_what_was_said() {
        let reason = Reason::of(&failure("boom", None), b" \n");
        assert_eq!(reason.whole(100), "boom");
        let reason = Reason::of(&failure("boom", Some("line 1\n")), b"ouch\n");
        assert_eq!(reason.whole(100), "boom\nline 1\nstderr:\nouch");
        let reason = Reason::of(&failure("", None), b"");
        assert_eq!(reason.whole(100), "no reason given");
    }

    #[test]
    fn a_reason_is_bounded_and_keeps_the_ends_of_its_details() {
        let long = "ä".repeat(MAX_PART);
        let traceback = format!("{long}the last line");
        let reason = Reason::of(&failure(&long, Some(&traceback)), traceback.as_bytes());
        assert!(reason.detail.len() <= 2 * MAX_PART + "\nstderr:\n".len());
        assert_eq!(reason.detail.matches("the last line").count(), 2);
        for most in [0, 1, 100, MAX_PART, 4 * MAX_PART] {
            let whole = reason.whole(most);
            assert!(whole.len() <= most, "{} > {most}", whole.len());
        }
        let whole = reason.whole(3 * MAX_PART);
        assert!(whole.starts_with('ä') && whole.ends_with("the last line"));
    }
}
