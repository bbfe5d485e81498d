//! Attempts of a job that failed or were lost.

use serde::Deserialize;

/// Reason for which an attempt ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The run failed.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// The worker went away.
    Lost,
}

impl AttemptOutcome {
    /// Returns the word of the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

/// An attempt that failed or was lost. A record has the last 10.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FailedAttempt {
    /// Its number, from 1. A lost attempt does not count, so that the next one has the same number.
    pub number: Option<u32>,
    /// Start, in milliseconds since 1970.
    #[serde(rename = "started")]
    pub started_ms: Option<u64>,
    /// End, in milliseconds since 1970.
    #[serde(rename = "ended")]
    pub ended_ms: u64,
    /// Worker that ran it.
    pub worker: String,
    /// Reason of its end.
    pub outcome: AttemptOutcome,
    /// First 500 bytes of the error; empty if the worker went away.
    pub error: String,
}

impl FailedAttempt {
    /// Reads a field of a record, the oldest attempt first. Lines of another form are left out.
    pub(super) fn read_all(value: &[u8]) -> Vec<Self> {
        let text = String::from_utf8_lossy(value);
        let lines = text.lines().map(serde_json::from_str);
        lines.filter_map(Result::ok).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_another_form_are_left_out() {
        let one = "{\"number\":null,\"started\":null,\"ended\":7,\"worker\":\"w\",\"outcome\":\"lost\",\"error\":\"\"}";
        let field = format!("d\":1}}\n{one}\n\n[]\n{{}}\n");
        let read = FailedAttempt::read_all(&[field.as_bytes(), b"\xff"].concat());
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].number, read[0].ended_ms), (None, 7));
        assert_eq!(read[0].outcome.as_str(), "lost");
    }
}
