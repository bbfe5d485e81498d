//! A job's record, and the changes of it by a worker and a scheduler.

use std::time::Duration;

use super::draft::{Draft, Piece};
use super::span::Object;
use super::{Outcome, Status, pause, time};
use crate::name::RoutingKey;
use crate::route::Priority;

/// The reason why bytes are not a job's record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corrupt {
    /// The bytes are not UTF-8.
    #[error("it is no UTF-8")]
    NotText,
    /// The text is not a JSON object.
    #[error("{0}")]
    NotAnObject(String),
    /// A field has a type that readers do not accept.
    #[error("`{field}` is {found}, not {needed}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value, shortened.
        found: String,
        /// The expected type.
        needed: &'static str,
    },
}

/// Number of characters that an error shows of a wrong value.
const SHOWN: usize = 60;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    object: Object,
    name: String,
    attempts: u32,
    max_retries: Option<u32>,
}

impl Record {
    /// Reads a record. All fields are optional; a field that is present must have the type that Bananas' workers
    /// expect.
    ///
    /// # Errors
    /// [`Corrupt`] if the bytes are not a job. A worker moves such an id to the dead letters.
    pub fn read(bytes: &[u8]) -> Result<Self, Corrupt> {
        let text = std::str::from_utf8(bytes).map_err(|_| Corrupt::NotText)?;
        let object =
            Object::read(text.to_owned()).map_err(|why| Corrupt::NotAnObject(why.to_string()))?;
        for field in [
            "id",
            "description",
            "status",
            "priority",
            "error",
            "routing_key",
        ] {
            word(&object, field)?;
        }
        Ok(Self {
            name: word(&object, "name")?.unwrap_or_default(),
            attempts: number(&object, "attempts")?.unwrap_or_default(),
            max_retries: number(&object, "max_retries")?,
            object,
        })
    }

    /// Returns the unchanged text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.object.text()
    }

    /// Returns the spans of its fields.
    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the name of the handler.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a text field, or the empty text.
    #[must_use]
    pub fn word(&self, field: &'static str) -> String {
        word(&self.object, field).ok().flatten().unwrap_or_default()
    }

    /// Returns the input of the handler: any JSON, unchanged.
    #[must_use]
    pub fn payload(&self) -> &str {
        self.object.get("payload").unwrap_or("null")
    }

    /// Returns the status, if the word is known.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        Status::read(&self.word("status"))
    }

    /// Returns the outcome, as far as the record has it; `None` for a job that has not ended. Bananas' workers
    /// replace lost or unreadable records by one with an error and without a status.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let error = Some(self.word("error")).filter(|error| !error.is_empty());
        let succeeded = match self.status() {
            Some(Status::Completed) => true,
            Some(Status::Failed) => false,
            None if error.is_some() && self.name.is_empty() => false,
            _ => return None,
        };
        Some(Outcome {
            succeeded,
            result: None,
            error: error.filter(|_| !succeeded),
            completed_at: self.word("updated_at"),
            duration_ms: None,
        })
    }

    /// Returns the priority. Unknown words are `normal`.
    #[must_use]
    pub fn priority(&self) -> Priority {
        let word = self.word("priority");
        let known = Priority::ALL.into_iter().find(|p| p.as_str() == word);
        known.unwrap_or_default()
    }

    /// Returns the route: `default` where the record has none, `None` where the key is not a valid route. Two client
    /// implementations do not check it.
    #[must_use]
    pub fn route(&self) -> Option<RoutingKey> {
        match self.word("routing_key") {
            none if none.is_empty() => Some(RoutingKey::default()),
            key => key.parse().ok(),
        }
    }

    /// Returns whether the record was written before `end`, a time in the format of results. False if either time
    /// cannot be read.
    #[must_use]
    pub fn is_before(&self, end: &str) -> bool {
        match (time::read(&self.word("updated_at")), time::read(end)) {
            (Some(written), Some(end)) => written < end,
            _ => false,
        }
    }

    /// Returns the time of the last write, in milliseconds since 1970, if the record has it.
    #[must_use]
    pub fn written_ms(&self) -> Option<u64> {
        let times = ["updated_at", "created_at"].into_iter();
        times
            .map(|field| self.word(field))
            .find_map(|at| time::read(&at))
    }

    /// Returns the number of failures so far.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the greatest number of runs, if the record has it.
    #[must_use]
    pub fn max_retries(&self) -> Option<u32> {
        self.max_retries
    }

    /// Returns the record of the job after it completed.
    #[must_use]
    pub fn completed(&self) -> Draft {
        let edit = self.object.edit();
        let edit = edit.set("status", word_of(Status::Completed.as_str()), &["payload"]);
        edit.set("updated_at", now(0), &["created_at"]).done()
    }

    /// Returns the record after one more failure. A job that will be retried also has its backoff; another one gets
    /// the record of a dead letter.
    #[must_use]
    pub fn failed(&self, error: &str, again: bool) -> (Draft, Option<Duration>) {
        let attempts = self.attempts.saturating_add(1);
        let status = if again {
            Status::Pending
        } else {
            Status::Failed
        };
        let count = vec![Piece::Text(attempts.to_string())];
        let edit = self
            .object
            .edit()
            .set("status", word_of(status.as_str()), &["payload"])
            .set("updated_at", now(0), &["created_at"])
            .set("attempts", count, &["updated_at"]);
        let edit = edit.set("error", word_of(error), &["max_retries", "attempts"]);
        if !again {
            return (edit.done(), None);
        }
        let pause = pause(attempts);
        let due = now(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let edit = edit.set("scheduled_for", due, &["updated_at"]);
        (edit.done(), Some(pause))
    }

    /// Returns the record of a dead letter that is retried: pending, with no failures.
    #[must_use]
    pub fn replayed(&self) -> Draft {
        let none = vec![Piece::Text("0".to_owned())];
        let edit = self.object.edit();
        let edit = edit
            .set("status", word_of(Status::Pending.as_str()), &["payload"])
            .set("updated_at", now(0), &["created_at"])
            .set("attempts", none, &["updated_at"]);
        edit.remove("error").remove("scheduled_for").done()
    }

    /// Returns the record after the delay. The status stays, as Bananas' scheduler leaves it.
    #[must_use]
    pub fn promoted(&self) -> Draft {
        self.object.edit().remove("scheduled_for").done()
    }
}

/// Returns the time of the write, plus an offset, as a JSON value.
pub(super) fn now(plus_ms: u64) -> Vec<Piece> {
    let quote = || Piece::Text("\"".to_owned());
    vec![quote(), Piece::Now { plus_ms }, quote()]
}

/// Returns text as a JSON value.
pub(super) fn word_of(text: &str) -> Vec<Piece> {
    vec![Piece::Text(serde_json::Value::from(text).to_string())]
}

fn word(object: &Object, field: &'static str) -> Result<Option<String>, Corrupt> {
    value(object, field, "a text")
}

/// Reads a count like Go: a negative number is 0, and one that is too large is the greatest.
fn number(object: &Object, field: &'static str) -> Result<Option<u32>, Corrupt> {
    let number: Option<i64> = value(object, field, "a whole number")?;
    Ok(number.map(|number| u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
}

/// Reads a value; `null` counts as absent.
fn value<T: serde::de::DeserializeOwned>(
    object: &Object,
    field: &'static str,
    needed: &'static str,
) -> Result<Option<T>, Corrupt> {
    let Some(raw) = object.get(field) else {
        return Ok(None);
    };
    serde_json::from_str(raw).map_err(|_| Corrupt::Field {
        field,
        found: raw.chars().take(SHOWN).collect(),
        needed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO: &str = r#"{"id":"1","name":"n","payload":{"b":12345678901234567890,"a":1.0},"status":"pending","priority":"urgent","created_at":"c","updated_at":"u","attempts":0,"max_retries":3,"routing_key":"gpu","x_trace":{"k": [1,2]}}"#;

    fn read(text: &str) -> Record {
        Record::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        let job = read("{}");
        assert_eq!((job.name(), job.payload()), ("", "null"));
        assert_eq!((job.status(), job.priority()), (None, Priority::Normal));
        assert!(job.route().unwrap().is_default());
        assert_eq!((job.attempts(), job.max_retries()), (0, None));
        let nulls = read(r#"{"name":null,"attempts":null,"routing_key":null}"#);
        assert_eq!((nulls.name(), nulls.attempts()), ("", 0));
    }

    #[test]
    fn odd_values_are_read_as_bananas_does() {
        let job = read(GO);
        assert_eq!(job.priority(), Priority::Normal);
        assert_eq!(job.payload(), r#"{"b":12345678901234567890,"a":1.0}"#);
        assert_eq!(job.route().unwrap().as_str(), "gpu");
        assert_eq!(read(r#"{"routing_key":"a@b"}"#).route(), None);
        assert_eq!(read(r#"{"status":"lost"}"#).status(), None);
        let job = read(r#"{"attempts":-1,"max_retries":-3}"#);
        assert_eq!((job.attempts(), job.max_retries()), (0, Some(0)));
        let job = read(r#"{"attempts":4294967296,"max_retries":4294967296}"#);
        assert_eq!(
            (job.attempts(), job.max_retries()),
            (u32::MAX, Some(u32::MAX))
        );
    }

    #[test]
    fn what_no_worker_could_read_is_refused_by_name() {
        for (bad, field) in [
            (r#"{"name":5}"#, "name"),
            (r#"{"attempts":"1"}"#, "attempts"),
            (r#"{"attempts":1.5}"#, "attempts"),
            (r#"{"max_retries":1e3}"#, "max_retries"),
            (r#"{"max_retries":9223372036854775808}"#, "max_retries"),
            (r#"{"routing_key":[]}"#, "routing_key"),
        ] {
            let error = Record::read(bad.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
        assert_eq!(Record::read(b"{\"a\":\"\xff\"}"), Err(Corrupt::NotText));
        assert!(matches!(
            Record::read(b"{not json"),
            Err(Corrupt::NotAnObject(_))
        ));
    }

    #[test]
    fn an_end_changes_two_fields() {
        let expected = GO
            .replace("pending", "completed")
            .replace("\"u\"", "\"1970-01-01T00:00:00.000000Z\"");
        assert_eq!(read(GO).completed().at(0), expected);
    }

    #[test]
    fn a_failure_adds_what_go_adds_and_where_it_adds_it() {
        let (draft, pause) = read(GO).failed("no <route>\0", true);
        let expected = GO
            .replace(
                "\"u\",\"attempts\":0",
                "\"1970-01-01T00:00:00.000000Z\",\"scheduled_for\":\"1970-01-01T00:00:02.000000Z\",\"attempts\":1",
            )
            .replace("3,", "3,\"error\":\"no <route>\\u0000\",");
        assert_eq!(draft.at(0), expected);
        assert_eq!(pause, Some(Duration::from_secs(2)));
        let (draft, pause) = read(&expected).failed("again", false);
        let dead = read(&draft.at(0));
        assert_eq!((dead.attempts(), pause), (2, None));
        assert_eq!(dead.status(), Some(Status::Failed));
        assert_eq!(dead.word("error"), "again");
    }

    #[test]
    fn a_record_tells_what_it_is_older_than() {
        let at = "2026-11-20T11:33:57Z";
        for (written, before) in [
            ("2026-11-20T11:33:56.999999+00:00", true),
            ("2026-11-20T11:33:56.999999999Z", true),
            ("2026-11-20T11:33:57.000001Z", false),
            ("2026-11-20T11:33:56", false),
            ("0001-01-01T00:00:00Z", false),
            ("", false),
        ] {
            let record = read(&format!("{{\"updated_at\":\"{written}\"}}"));
            assert_eq!(record.is_before(at), before, "{written}");
            assert!(!record.is_before("soon"));
        }
    }

    #[test]
    fn a_record_tells_when_it_was_written() {
        let (first, then) = ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02.5Z");
        for (created, updated, at) in [
            (first, then, Some(2500)),
            (first, "", Some(1000)),
            ("", "2026-11-20T11:33:56", None),
        ] {
            let record = format!("{{\"created_at\":\"{created}\",\"updated_at\":\"{updated}\"}}");
            assert_eq!(read(&record).written_ms(), at, "{record}");
        }
    }

    #[test]
    fn what_has_come_due_has_no_time_any_more() {
        let text = r#"{"id": "1", "status": "scheduled", "scheduled_for": "2026-11-20T12:33:45"}"#;
        let expected = r#"{"id": "1", "status": "scheduled"}"#;
        assert_eq!(read(text).promoted().at(0), expected);
    }
}
