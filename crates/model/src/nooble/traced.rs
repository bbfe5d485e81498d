//! What the trace of actions tells of one run, which is ours alone: Nooble4 has no trace.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One run of an action that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced<'a> {
    /// The task; of lists, which have none, the trace.
    pub task: Cow<'a, str>,
    /// The action's id.
    pub action: Cow<'a, str>,
    /// Its type.
    #[serde(rename = "type")]
    pub action_type: Cow<'a, str>,
    /// Its span, and the one that it comes from (empty for none), 16 digits each.
    pub span: Cow<'a, str>,
    /// See [`Self::span`].
    pub parent: Cow<'a, str>,
    /// Which service asked for it (empty for none).
    pub from: Cow<'a, str>,
    /// Which one ran it.
    pub service: Cow<'a, str>,
    /// Its correlation id (empty for none).
    pub correlation: Cow<'a, str>,
    /// Its trace (empty for none).
    pub trace: Cow<'a, str>,
    /// When it was asked for, as its message says.
    pub asked: Cow<'a, str>,
    /// When the run began.
    pub began: Cow<'a, str>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How it ended.
    pub how: Ended,
    /// Why it failed (empty if it did not).
    pub error: Cow<'a, str>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It went well.
    Done,
    /// It failed.
    Failed,
}

impl Ended {
    /// As a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl Traced<'_> {
    /// As an entry of the trace.
    #[must_use]
    pub fn write(&self) -> String {
        // Texts and a number can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Traced<'static> {
    /// Reads an entry of the trace. None if it is none.
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
        let told = Traced {
            task: "t".into(),
            action: "a".into(),
            action_type: "demo.run".into(),
            span: "0123456789abcdef".into(),
            parent: "".into(),
            from: "caller".into(),
            service: "demo".into(),
            correlation: "c".into(),
            trace: "t".into(),
            asked: "2026-01-01T00:00:00.000001Z".into(),
            began: "2026-01-01T00:00:00.000002Z".into(),
            took_ms: 12,
            how: Ended::Failed,
            error: "it\nfailed \"so\"".into(),
        };
        let written = told.write();
        assert_eq!(Traced::read(written.as_bytes()), Some(told));
        let value: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(
            (&value["type"], &value["how"], &value["took_ms"]),
            (&"demo.run".into(), &"failed".into(), &12.into())
        );
    }

    #[test]
    fn what_is_no_entry_is_none() {
        for bad in ["", "{}", "\u{fffd}", "[1]"] {
            assert_eq!(Traced::read(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Traced::read(b"\xff"), None);
    }
}
