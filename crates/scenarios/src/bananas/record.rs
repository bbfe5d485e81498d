//! Records as the programs of Bananas write and read them. This code shares nothing with Meshwork, which it tests.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use serde_json::Value;
use serde_json::value::RawValue;

use meshwork_conformance::accept;

/// A job in the memory of a program of Bananas.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    /// JSON text.
    pub(super) payload: String,
    pub(super) status: String,
    pub(super) priority: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) scheduled_for: String,
    pub(super) attempts: u64,
    pub(super) max_retries: u64,
    pub(super) error: String,
    pub(super) routing_key: String,
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Record {
    /// Returns the record with the field order and the blanks of this variant. The variants in Go omit empty fields.
    pub(super) fn write(&self, make: ClientVariant) -> String {
        let go = matches!(make, ClientVariant::Go | ClientVariant::GoRouted);
        let route = ("routing_key", quoted(&self.routing_key));
        let mut fields = vec![("id", quoted(&self.id)), ("name", quoted(&self.name))];
        if !go || !self.description.is_empty() {
            fields.push(("description", quoted(&self.description)));
        }
        fields.extend([
            ("payload", self.payload.clone()),
            ("status", quoted(&self.status)),
            ("priority", quoted(&self.priority)),
        ]);
        if make == ClientVariant::GoRouted {
            fields.push(route.clone());
        }
        fields.extend([
            ("created_at", quoted(&self.created_at)),
            ("updated_at", quoted(&self.updated_at)),
        ]);
        let due = (!self.scheduled_for.is_empty())
            .then(|| ("scheduled_for", quoted(&self.scheduled_for)));
        fields.extend(due.clone().filter(|_| go));
        fields.extend([
            ("attempts", self.attempts.to_string()),
            ("max_retries", self.max_retries.to_string()),
        ]);
        if !go || !self.error.is_empty() {
            fields.push(("error", quoted(&self.error)));
        }
        if make != ClientVariant::GoRouted {
            fields.push(route);
        }
        fields.extend(due.filter(|_| !go));
        let blank = if make == ClientVariant::Python {
            " "
        } else {
            ""
        };
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{blank}{value}"))
            .collect();
        format!("{{{}}}", fields.join(&format!(",{blank}")))
    }

    /// Reads a record as the programs in Go do. Unknown fields are lost when they write it again.
    ///
    /// # Errors
    /// The reason why the text is no job for them.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        accept::record(ClientVariant::Go, text)?;
        let fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let value = |name: &str| {
            let raw = fields.get(name).map_or("null", |raw| raw.get());
            serde_json::from_str::<Value>(raw).unwrap_or_default()
        };
        let word = |name: &str| value(name).as_str().unwrap_or_default().to_owned();
        let number = |name: &str| value(name).as_u64().unwrap_or_default();
        Ok(Self {
            id: word("id"),
            name: word("name"),
            description: word("description"),
            payload: fields
                .get("payload")
                .map_or("null", |raw| raw.get())
                .to_owned(),
            status: word("status"),
            priority: word("priority"),
            created_at: word("created_at"),
            updated_at: word("updated_at"),
            scheduled_for: word("scheduled_for"),
            attempts: number("attempts"),
            max_retries: number("max_retries"),
            error: word("error"),
            routing_key: word("routing_key"),
        })
    }
}

/// Formats a time since 1970 as this variant does: Go writes up to nine digits without zeros at the end. Python
/// writes six digits unless all are zeros, TypeScript three.
pub(super) fn stamp(make: ClientVariant, at: Duration) -> String {
    let second = second(at);
    let second = second.trim_end_matches('Z');
    match make {
        ClientVariant::Go | ClientVariant::GoRouted => {
            let digits = format!("{:09}", at.subsec_nanos());
            match digits.trim_end_matches('0') {
                "" => format!("{second}Z"),
                digits => format!("{second}.{digits}Z"),
            }
        }
        ClientVariant::TypeScript => format!("{second}.{:03}Z", at.subsec_millis()),
        ClientVariant::Python => match at.subsec_micros() {
            0 => format!("{second}+00:00"),
            micros => format!("{second}.{micros:06}+00:00"),
        },
    }
}

/// Formats a time since 1970 in whole seconds, as the programs in Go write it into results.
pub(super) fn second(at: Duration) -> String {
    let mut text = meshwork_model::time::iso(at.as_secs() * 1000);
    text.truncate("2026-01-31T12:00:00".len());
    text + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as captured from the real programs.
    #[test]
    fn each_make_writes_as_it_does() {
        let mut job = Record {
            id: "1".to_owned(),
            name: "n".to_owned(),
            payload: "{}".to_owned(),
            status: "pending".to_owned(),
            priority: "low".to_owned(),
            created_at: "c".to_owned(),
            updated_at: "u".to_owned(),
            max_retries: 3,
            routing_key: "gpu".to_owned(),
            ..Record::default()
        };
        let go = r#"{"id":"1","name":"n","payload":{},"status":"pending","priority":"low","created_at":"c","updated_at":"u","attempts":0,"max_retries":3,"routing_key":"gpu"}"#;
        assert_eq!(job.write(ClientVariant::Go), go);
        let routed = r#"{"id":"1","name":"n","payload":{},"status":"pending","priority":"low","routing_key":"gpu","created_at":"c","updated_at":"u","attempts":0,"max_retries":3}"#;
        assert_eq!(job.write(ClientVariant::GoRouted), routed);
        job.scheduled_for = "s".to_owned();
        let python = r#"{"id": "1", "name": "n", "description": "", "payload": {}, "status": "pending", "priority": "low", "created_at": "c", "updated_at": "u", "attempts": 0, "max_retries": 3, "error": "", "routing_key": "gpu", "scheduled_for": "s"}"#;
        assert_eq!(job.write(ClientVariant::Python), python);
    }

    #[test]
    fn each_make_has_its_own_digits() {
        let at = Duration::new(1_795_178_025, 140_000_000);
        let stamps = ClientVariant::ALL.map(|make| stamp(make, at));
        assert_eq!(stamps[0], "2026-11-20T12:33:45.14Z");
        assert_eq!(stamps[2], "2026-11-20T12:33:45.140Z");
        assert_eq!(stamps[3], "2026-11-20T12:33:45.140000+00:00");
        let whole = Duration::from_secs(1_795_178_025);
        assert_eq!(stamp(ClientVariant::Go, whole), "2026-11-20T12:33:45Z");
        assert_eq!(
            stamp(ClientVariant::Python, whole),
            "2026-11-20T12:33:45+00:00"
        );
    }
}
