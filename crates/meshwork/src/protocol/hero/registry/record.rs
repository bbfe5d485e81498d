//! Registration record of a worker: Hero's JSON and further fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::process::Process;

/// The record that workers of Meshwork write.
#[derive(Debug, Serialize)]
pub(super) struct RegistrationRecord<'a> {
    pub(super) pid: u32,
    pub(super) hostname: &'a str,
    pub(super) started_at: &'a str,
    pub(super) version: &'a str,
    /// Script types that it runs.
    pub(super) capabilities: &'a [String],
    pub(super) last_heartbeat: &'a str,
    // Fields of Meshwork.
    pub(super) incarnation: &'a str,
    pub(super) in_flight: usize,
    pub(super) slots: usize,
    /// True if the worker claims no more jobs.
    pub(super) quiet: bool,
    /// Runtimes that cannot start runs, with the reasons.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) faults: &'a BTreeMap<String, String>,
    /// True if jobs can be pinned to it by name.
    pub(super) named: bool,
    pub(super) pid_started: Option<u64>,
    pub(super) pid_counted_in: Option<&'a str>,
}

/// Returns the part of a record that no other process writes.
pub(super) fn mark(incarnation: &str) -> String {
    format!("\"incarnation\":\"{incarnation}\"")
}

/// A live worker, from its registration. Foreign workers leave fields empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Script type.
    pub script_type: String,
    /// Group.
    pub group: String,
    /// Name within the group; generated if the worker has none.
    pub instance: String,
    /// True if jobs can be pinned to the worker by that name.
    pub named: bool,
    /// Pid of its process.
    pub pid: Option<u32>,
    /// Name of its host.
    pub hostname: Option<String>,
    /// ISO 8601, as written.
    pub started_at: Option<String>,
    /// Release of Meshwork.
    pub version: Option<String>,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// ISO 8601, as written.
    pub last_heartbeat: Option<String>,
    /// Its name with the incarnation, as in the records of its jobs.
    pub worker: Option<String>,
    /// Number of jobs in flight at its last heartbeat.
    pub in_flight: Option<usize>,
    /// Its concurrency.
    pub slots: Option<usize>,
    /// True if the worker claims no more jobs, and completes running ones.
    pub quiet: bool,
    /// Reason why it cannot start jobs of this type now. They wait for another worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    #[serde(skip)]
    pid_started: Option<u64>,
    #[serde(skip)]
    pid_counted_in: Option<String>,
}

/// Reads a record of any writer. Fields of an unexpected type are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Fields(serde_json::Map<String, serde_json::Value>);

impl Fields {
    fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns a text of a field of a field.
    fn text_of(&self, name: &str, of: &str) -> Option<String> {
        let text = self.0.get(name)?.get(of)?.as_str()?;
        Some(text.to_owned())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(serde_json::Value::as_array);
        let items = items.into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    }
}

impl WorkerInfo {
    /// Reads a registration by its key (`type:group:instance`) and record.
    pub(crate) fn read(key: &str, value: &str) -> Self {
        let fields: Fields = serde_json::from_str(value).unwrap_or_default();
        let mut parts = key.splitn(3, ':').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        let script_type = part();
        Self {
            fault: fields.text_of("faults", &script_type),
            script_type,
            group: part(),
            instance: part(),
            named: fields.0.get("named") != Some(&serde_json::Value::Bool(false)),
            pid: fields.number("pid"),
            hostname: fields.text("hostname"),
            started_at: fields.text("started_at"),
            version: fields.text("version"),
            capabilities: fields.texts("capabilities"),
            last_heartbeat: fields.text("last_heartbeat"),
            worker: fields.text("incarnation"),
            in_flight: fields.number("in_flight"),
            slots: fields.number("slots"),
            quiet: fields.0.get("quiet") == Some(&serde_json::Value::Bool(true)),
            pid_started: fields.number("pid_started"),
            pid_counted_in: fields.text("pid_counted_in"),
        }
    }

    /// Returns the process that wrote the record, if it is named.
    pub(super) fn process(&self) -> Option<Process> {
        Some(Process {
            pid: self.pid?,
            hostname: self.hostname.clone()?,
            started: self.pid_started,
            counted_in: self.pid_counted_in.clone(),
        })
    }

    /// Returns the worker if its process has ended and ran in the scope of `own`.
    pub(super) fn dead(&self, own: &Process) -> Option<&str> {
        let is_dead = self.process()?.is_dead(own);
        self.worker.as_deref().filter(|_| is_dead)
    }

    /// Returns the used share of its slots, if known.
    pub(super) fn load(&self) -> Option<f64> {
        let (in_flight, slots) = (self.in_flight?, self.slots?);
        (slots > 0).then(|| in_flight as f64 / slots as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let faults = BTreeMap::from([("osis".to_owned(), "no room".to_owned())]);
        let said = RegistrationRecord {
            pid: 7,
            hostname: "h",
            started_at: "2026-01-01T00:00:00.000Z",
            version: "1.0",
            capabilities: &["osis".to_owned()],
            last_heartbeat: "2026-01-01T00:00:05.000Z",
            incarnation: "w.7.00",
            in_flight: 3,
            slots: 4,
            quiet: true,
            faults: &faults,
            named: false,
            pid_started: Some(9),
            pid_counted_in: Some("b"),
        };
        let text = serde_json::to_string(&said).unwrap();
        assert!(text.contains(&mark("w.7.00")), "{text}");
        let info = WorkerInfo::read("osis:default:1", &text);
        assert_eq!(
            (
                info.script_type.as_str(),
                info.group.as_str(),
                info.instance.as_str()
            ),
            ("osis", "default", "1")
        );
        assert_eq!(
            (info.pid, info.slots, info.load()),
            (Some(7), Some(4), Some(0.75))
        );
        assert!(!info.named && info.quiet);
        assert_eq!(info.fault.as_deref(), Some("no room"));
        let other = WorkerInfo::read("sal:default:1", &text);
        assert_eq!(other.fault, None);
        let process = info.process().unwrap();
        assert_eq!(
            (process.started, process.counted_in.as_deref()),
            (Some(9), Some("b"))
        );
    }

    #[test]
    fn others_write_what_they_like() {
        for value in [
            "",
            "[]",
            "null",
            "{\"pid\":\"x\"}",
            "{\"pid\":[1],\"capabilities\":3}",
        ] {
            let info = WorkerInfo::read("sal:io:3", value);
            assert_eq!((info.pid, info.load()), (None, None), "{value}");
            assert!(info.named && !info.quiet && info.process().is_none());
        }
        let info = WorkerInfo::read("sal:io:3", "{\"pid\":\"12\",\"capabilities\":[\"a\",1]}");
        assert_eq!(
            (info.pid, info.capabilities),
            (Some(12), vec!["a".to_owned()])
        );
        assert_eq!(WorkerInfo::read("odd", "{}").group, "");
    }
}
