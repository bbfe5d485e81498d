//! The outcome of a job, as its result hash records it.

use super::Status;

/// The content of `bananas:result:{id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// True if the job completed, false if it failed.
    pub succeeded: bool,
    /// The result: JSON, unchanged.
    pub result: Option<String>,
    /// The reason of a failure.
    pub error: Option<String>,
    /// Time of the end, unchanged.
    pub completed_at: String,
    /// Duration of the run in milliseconds, if the hash has it.
    pub duration_ms: Option<u64>,
}

impl Outcome {
    /// Reads the hash. Returns `None` if the hash records no end.
    #[must_use]
    pub fn read(fields: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let mut outcome = Self {
            succeeded: false,
            result: None,
            error: None,
            completed_at: String::new(),
            duration_ms: None,
        };
        let mut status = None;
        for (name, value) in fields {
            match name.as_str() {
                "status" => status = Status::read(&value),
                "result" => outcome.result = Some(value),
                "error" => outcome.error = Some(value),
                "completed_at" => outcome.completed_at = value,
                "duration_ms" => outcome.duration_ms = value.parse().ok(),
                _ => {}
            }
        }
        match status? {
            Status::Completed => outcome.succeeded = true,
            Status::Failed => {}
            _ => return None,
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Option<Outcome> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Outcome::read(fields.iter().map(own))
    }

    #[test]
    fn both_ends_are_read_and_nothing_else() {
        let time = "2026-11-20T11:33:51.614457+00:00";
        let done = read(&[
            ("status", "completed"),
            ("completed_at", time),
            ("duration_ms", "17"),
            ("result", "{\"answer\": 42}"),
        ]);
        let done = done.unwrap();
        assert!(done.succeeded && done.duration_ms == Some(17) && done.completed_at == time);
        assert_eq!(done.result.as_deref(), Some("{\"answer\": 42}"));
        let bad = read(&[("status", "failed"), ("error", "boom"), ("x", "y")]).unwrap();
        assert!(!bad.succeeded && bad.error.as_deref() == Some("boom"));
        assert_eq!(read(&[("status", "pending")]), None);
        assert_eq!(read(&[]), None);
    }
}
