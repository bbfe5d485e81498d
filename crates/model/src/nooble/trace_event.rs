//! An entry in the trace of actions. The trace is Meshwork's own; Nooble4 has none.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One completed run of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent<'a> {
    /// Task of the action; in the lists dialect, which has no tasks, its trace.
    pub task: Cow<'a, str>,
    /// Id of the action.
    pub action: Cow<'a, str>,
    /// Type of the action.
    #[serde(rename = "type")]
    pub action_type: Cow<'a, str>,
    /// Span of the run (16 hexadecimal digits).
    pub span: Cow<'a, str>,
    /// Span of the caller (16 hexadecimal digits; empty for none).
    pub parent: Cow<'a, str>,
    /// Calling service (empty for none).
    pub from: Cow<'a, str>,
    /// Service that ran the action.
    pub service: Cow<'a, str>,
    /// Correlation id (empty for none).
    pub correlation: Cow<'a, str>,
    /// Trace (empty for none).
    pub trace: Cow<'a, str>,
    /// Time of the request, from its message.
    pub requested: Cow<'a, str>,
    /// Time at which the run started.
    pub began: Cow<'a, str>,
    /// Duration of the run, in milliseconds.
    pub took_ms: u64,
    /// Outcome of the run.
    pub how: ActionOutcome,
    /// Reason of a failure (empty for none).
    pub error: Cow<'a, str>,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionOutcome {
    /// The run succeeded.
    Done,
    /// The run failed.
    Failed,
}

impl ActionOutcome {
    /// Returns the word for the outcome.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl TraceEvent<'_> {
    /// Returns the entry as JSON.
    #[must_use]
    pub fn write(&self) -> String {
        // Texts and a number always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl TraceEvent<'static> {
    /// Reads an entry of the trace; `None` if it is not valid.
    #[must_use]
    pub fn read(entry: &[u8]) -> Option<Self> {
        serde_json::from_slice(entry).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let event = TraceEvent {
            task: "t".into(),
            action: "a".into(),
            action_type: "demo.run".into(),
            span: "0123456789abcdef".into(),
            parent: "".into(),
            from: "caller".into(),
            service: "demo".into(),
            correlation: "c".into(),
            trace: "t".into(),
            requested: "2026-01-01T00:00:00.000001Z".into(),
            began: "2026-01-01T00:00:00.000002Z".into(),
            took_ms: 12,
            how: ActionOutcome::Failed,
            error: "it\nfailed \"so\"".into(),
        };
        let written = event.write();
        assert_eq!(TraceEvent::read(written.as_bytes()), Some(event));
        let value: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(
            (&value["type"], &value["how"], &value["took_ms"]),
            (&"demo.run".into(), &"failed".into(), &12.into())
        );
    }

    #[test]
    fn what_is_no_entry_is_none() {
        for bad in ["", "{}", "\u{fffd}", "[1]"] {
            assert_eq!(TraceEvent::read(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(TraceEvent::read(b"\xff"), None);
    }
}
