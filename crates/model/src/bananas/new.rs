//! New jobs of Bananas, and their records in the format of each client implementation.

use serde_json::value::RawValue;

use super::draft::{Draft, Piece};
use super::record::now;
use super::time::micros;
use super::{ClientVariant, DEFAULT_MAX_RETRIES, Status};
use crate::keys::bananas::BananasKeys;
use crate::name::{JobId, RoutingKey};
use crate::route::Priority;

/// Greatest length of a payload, in bytes. A larger one blocks the server for all others while it is read.
pub const MAX_PAYLOAD: usize = 64 * 1024 * 1024;

/// The reason why a job was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJob {
    /// The job has no handler name.
    #[error("job {id} has no name: name its handler")]
    NoName {
        /// The job.
        id: JobId,
    },
    /// The payload is not JSON.
    #[error("the payload of job {id} is no JSON: {why}")]
    Payload {
        /// The job.
        id: JobId,
        /// The reason.
        why: String,
    },
    /// The payload is too large.
    #[error("the payload of job {id} has {len} bytes: at most {MAX_PAYLOAD} are allowed")]
    TooLarge {
        /// The job.
        id: JobId,
        /// Length of the payload, in bytes.
        len: usize,
    },
}

/// A job to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Id of the job: clients use a UUID v4.
    pub id: JobId,
    /// Name of the handler.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Input of the handler: JSON, which the record contains unchanged.
    pub payload: String,
    /// Priority of the job.
    pub priority: Priority,
    /// Route of the job. Default: `default`.
    pub route: Option<RoutingKey>,
    /// Greatest number of runs.
    pub max_retries: u32,
    /// Time at which a delayed job is due, in milliseconds since 1970. `None`: at once.
    pub at_ms: Option<u64>,
}

impl NewJob {
    /// Returns a job for any worker of the route `default`, without a delay.
    #[must_use]
    pub fn new(id: JobId, name: impl Into<String>, payload: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            description: String::new(),
            payload: payload.into(),
            priority: Priority::Normal,
            route: None,
            max_retries: DEFAULT_MAX_RETRIES,
            at_ms: None,
        }
    }

    /// Returns the record in the format of `peer`. The server that stores the record fills in the times.
    ///
    /// # Errors
    /// No worker could run the job.
    pub fn record(&self, peer: ClientVariant) -> Result<Draft, InvalidJob> {
        self.check()?;
        let all = peer.writes_all();
        let text = |text: &str| {
            let json = serde_json::Value::from(text).to_string();
            vec![Piece::Text(peer.spell(&json))]
        };
        let literal = |json: String| vec![Piece::Text(json)];
        let status = match self.at_ms {
            Some(_) => Status::Scheduled,
            None => Status::Pending,
        };
        let route = match &self.route {
            None if all => text(""),
            route => text(route.clone().unwrap_or_default().as_str()),
        };
        let due = self.at_ms.map(|ms| text(&micros(ms)));
        let description = (all || !self.description.is_empty()).then(|| text(&self.description));
        let routed = peer == ClientVariant::GoRouted;
        let fields = [
            ("id", Some(text(self.id.as_str()))),
            ("name", Some(text(&self.name))),
            ("description", description),
            ("payload", Some(literal(peer.spell(&self.payload)))),
            ("status", Some(text(status.as_str()))),
            ("priority", Some(text(self.priority.as_str()))),
            ("routing_key", routed.then(|| route.clone())),
            ("created_at", Some(now(0))),
            ("updated_at", Some(now(0))),
            ("scheduled_for", due.clone().filter(|_| !all)),
            ("attempts", Some(literal("0".to_owned()))),
            ("max_retries", Some(literal(self.max_retries.to_string()))),
            ("error", all.then(|| text(""))),
            ("routing_key", Some(route).filter(|_| !routed)),
            ("scheduled_for", due.filter(|_| all)),
        ];
        Ok(object(peer.blank(), fields))
    }

    /// Returns the list to which a client of this kind pushes the job.
    #[must_use]
    pub fn list(&self, peer: ClientVariant, keys: &BananasKeys) -> String {
        let route = self.route.clone().unwrap_or_default();
        peer.list(keys, &route, self.priority)
    }

    fn check(&self) -> Result<(), InvalidJob> {
        let id = || self.id.clone();
        if self.name.is_empty() {
            return Err(InvalidJob::NoName { id: id() });
        }
        let len = self.payload.len();
        if len > MAX_PAYLOAD {
            return Err(InvalidJob::TooLarge { id: id(), len });
        }
        match serde_json::from_str::<&RawValue>(&self.payload) {
            Ok(_) => Ok(()),
            Err(why) => Err(InvalidJob::Payload {
                id: id(),
                why: why.to_string(),
            }),
        }
    }
}

/// Writes an object of the fields that have a value.
fn object<const N: usize>(blank: &str, fields: [(&str, Option<Vec<Piece>>); N]) -> Draft {
    let mut draft = Draft::default();
    let there = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    for (at, (name, value)) in there.enumerate() {
        let before = match at {
            0 => "{".to_owned(),
            _ => format!(",{blank}"),
        };
        draft.text(&format!("{before}\"{name}\":{blank}"));
        for piece in &value {
            draft.piece(piece);
        }
    }
    draft.text("}");
    draft
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(payload: &str) -> NewJob {
        NewJob::new("1".parse().unwrap(), "n", payload)
    }

    #[test]
    fn what_nobody_could_run_is_refused_by_name() {
        let mut nameless = job("{}");
        nameless.name = String::new();
        for bad in [nameless, job(""), job("{a:1}"), job("1 2")] {
            let error = bad.record(ClientVariant::Go).unwrap_err().to_string();
            assert!(error.contains("job 1"), "{error}");
        }
        let large = job(&format!("\"{}\"", "x".repeat(MAX_PAYLOAD)));
        assert!(matches!(
            large.record(ClientVariant::Go),
            Err(InvalidJob::TooLarge { .. })
        ));
    }

    #[test]
    fn any_json_may_be_the_payload() {
        for payload in [
            "null",
            "[1]",
            "\"x\"",
            "12345678901234567890",
            "{\"a\":1,\"a\":2}",
        ] {
            let text = job(payload).record(ClientVariant::Go).unwrap().at(0);
            let record = super::super::Record::read(text.as_bytes()).unwrap();
            assert_eq!(record.payload(), payload);
        }
    }
}
