//! Lines of an export: JSON, each an item of a store. The broker reads and stores items.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::ScheduleName;

/// The version of the format that is written and read.
pub const VERSION: u32 = 1;
/// The most ids in one line.
pub const MAX_IDS: usize = 1000;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Item {
    /// The first one.
    Export(Header),
    /// A setting of the queues.
    Setting {
        /// The field.
        name: String,
        /// Its value.
        value: Bytes,
    },
    /// A job that does not run.
    Job(StoredJob),
    /// Jobs that wait in a queue, the next one first.
    Queue {
        /// The queue.
        name: String,
        /// The jobs.
        ids: Vec<String>,
    },
    /// Jobs of a batch that are still to end.
    Members {
        /// The batch.
        batch: String,
        /// The jobs.
        ids: Vec<String>,
    },
    /// The first jobs of a batch.
    Joined {
        /// The batch.
        batch: String,
        /// The jobs.
        ids: Vec<String>,
    },
    /// A batch; after its jobs.
    Batch(StoredRecord),
    /// A schedule.
    Schedule(StoredRecord),
    /// The last one.
    End {
        /// The lines before it.
        lines: u64,
    },
}

/// The beginning of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`VERSION`].
    pub version: u32,
    /// Prefix of all keys: records contain names of queues.
    pub prefix: String,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredJob {
    /// Its id.
    pub id: String,
    /// Due time of a delayed job, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed: Option<String>,
    /// Time of death of a dead letter, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
    /// End of any other ended job, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The record.
    pub fields: BTreeMap<String, Bytes>,
}

/// A batch, or a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRecord {
    /// Its name.
    pub name: String,
    /// Due time, in milliseconds since 1970; none for a batch that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// End of a batch, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The record.
    pub fields: BTreeMap<String, Bytes>,
}

/// A value: in JSON a text, or `{"base64": …}` where it is none.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    /// Without the value, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<T> {
    Text(T),
    Other { base64: String },
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Written::Text(text),
            Err(_) => Written::Other {
                base64: BASE64.encode(&self.0),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::<String>::deserialize(deserializer)? {
            Written::Text(text) => Ok(Self(text.into_bytes())),
            Written::Other { base64 } => BASE64
                .decode(base64.as_bytes())
                .map(Self)
                .map_err(|error| D::Error::custom(format!("the value is no base64: {error}"))),
        }
    }
}

/// The reason why a line cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadItem {
    /// No JSON, or none of the items.
    #[error("{0}")]
    Unreadable(String),
    /// A score that is no number.
    #[error("{0:?} is no time in milliseconds")]
    Time(String),
    /// An item without a name.
    #[error("it has no {0}")]
    Nameless(&'static str),
    /// Too many ids, or none.
    #[error("it has {0} ids: 1 to {MAX_IDS} are possible")]
    Ids(usize),
    /// A job that runs, or whose status cannot be read.
    #[error(
        "job {0} has no status that can be imported: dispatched, waiting_for_prerequisites, finished or error"
    )]
    Status(String),
}

impl Item {
    /// The item of a line, checked.
    ///
    /// # Errors
    /// The first fault of the line.
    pub fn read(line: &[u8]) -> Result<Self, BadItem> {
        let item: Self =
            serde_json::from_slice(line).map_err(|error| BadItem::Unreadable(error.to_string()))?;
        item.check()?;
        Ok(item)
    }

    /// The line, without its end.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Checks what the type does not.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), BadItem> {
        match self {
            Self::Export(_) | Self::End { .. } => Ok(()),
            Self::Setting { name, .. } => named("name", name),
            Self::Job(job) => {
                named("id", &job.id)?;
                times(&[&job.delayed, &job.dead, &job.ended])?;
                let status = job.fields.get("status").map(|status| status.0.as_slice());
                let known: [&[u8]; 5] = [
                    b"",
                    b"dispatched",
                    b"waiting_for_prerequisites",
                    b"finished",
                    b"error",
                ];
                match status.is_some_and(|status| known.contains(&status)) {
                    true => Ok(()),
                    false => Err(BadItem::Status(job.id.clone())),
                }
            }
            Self::Queue { name, ids } => named("name", name).and_then(|()| counted(ids)),
            Self::Members { batch, ids } | Self::Joined { batch, ids } => {
                named("batch", batch).and_then(|()| counted(ids))
            }
            Self::Batch(record) | Self::Schedule(record) => {
                let is_schedule = matches!(self, Self::Schedule(_));
                if is_schedule && let Err(error) = record.name.parse::<ScheduleName>() {
                    return Err(BadItem::Unreadable(error.to_string()));
                }
                named("name", &record.name)?;
                times(&[&record.due, &record.ended])?;
                match record.fields.is_empty() {
                    true => Err(BadItem::Nameless("fields")),
                    false => Ok(()),
                }
            }
        }
    }
}

fn named(what: &'static str, name: &str) -> Result<(), BadItem> {
    match name.is_empty() {
        true => Err(BadItem::Nameless(what)),
        false => Ok(()),
    }
}

fn counted(ids: &[String]) -> Result<(), BadItem> {
    match (1..=MAX_IDS).contains(&ids.len()) {
        true => Ok(()),
        false => Err(BadItem::Ids(ids.len())),
    }
}

fn times(times: &[&Option<String>]) -> Result<(), BadItem> {
    for time in times.iter().filter_map(|time| time.as_ref()) {
        if time.parse::<f64>().map_or(true, f64::is_nan) {
            return Err(BadItem::Time(time.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_as_they_were() {
        let fields = BTreeMap::from([
            ("status".to_owned(), Bytes(b"finished".to_vec())),
            ("output".to_owned(), Bytes(vec![0xff, 0])),
        ]);
        let job = StoredJob {
            id: "j".to_owned(),
            delayed: None,
            dead: None,
            ended: Some("1732571234567".to_owned()),
            fields,
        };
        let item = Item::Job(job);
        let line = item.line();
        let text = String::from_utf8(line.clone()).unwrap();
        assert!(text.contains(r#""output":{"base64":"/wA="}"#), "{text}");
        assert_eq!(Item::read(&line).unwrap(), item);
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, words) in [
            ("{", "EOF"),
            (r#"{"jobs":{}}"#, "unknown variant `jobs`"),
            (r#"{"job":{"id":"","fields":{}}}"#, "no id"),
            (
                r#"{"job":{"id":"j","fields":{"status":"started"}}}"#,
                "job j has no status",
            ),
            (
                r#"{"job":{"id":"j","dead":"soon","fields":{"status":"error"}}}"#,
                "\"soon\" is no time",
            ),
            (r#"{"queue":{"name":"q","ids":[]}}"#, "0 ids"),
            (r#"{"batch":{"name":"b","fields":{}}}"#, "no fields"),
            (
                r#"{"setting":{"name":"n","value":{"base64":"*"}}}"#,
                "base64",
            ),
        ] {
            let said = Item::read(line.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(words), "{line}: {said}");
        }
    }
}
