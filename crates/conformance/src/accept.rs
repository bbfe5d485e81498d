//! Rules by which each variant of Bananas' clients refuses a record, a result, or the message about a result.

use std::collections::HashMap;

use meshwork_model::bananas::ClientVariant;
use serde_json::Value;

const STATUSES: [&str; 5] = ["pending", "processing", "completed", "failed", "scheduled"];
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];
/// Fields that Python's client requires in a record.
const NEEDED: [&str; 7] = [
    "id",
    "name",
    "payload",
    "priority",
    "status",
    "created_at",
    "updated_at",
];
const TIMES: [&str; 3] = ["created_at", "updated_at", "scheduled_for"];
const WORDS: [&str; 7] = [
    "id",
    "name",
    "description",
    "status",
    "priority",
    "error",
    "routing_key",
];

/// Checks that this variant's client accepts the job of a record.
///
/// # Errors
/// The reason why it refuses the record.
pub fn record(make: ClientVariant, text: &str) -> Result<(), String> {
    let job: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let fields = job.as_object().ok_or("no object")?;
    for name in TIMES {
        match fields.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                time(make, text).map_err(|why| format!("{name}: {why}"))?;
            }
            Some(other) => return Err(format!("{name} is {other}")),
        }
    }
    match make {
        ClientVariant::Go | ClientVariant::GoRouted => {
            for name in WORDS {
                match fields.get(name) {
                    None | Some(Value::Null | Value::String(_)) => {}
                    Some(other) => return Err(format!("{name} is {other}")),
                }
            }
            for name in ["attempts", "max_retries"] {
                match fields.get(name) {
                    None | Some(Value::Null) => {}
                    Some(number) if number.is_i64() => {}
                    Some(other) => return Err(format!("{name} is {other}")),
                }
            }
        }
        ClientVariant::Python => {
            for name in NEEDED {
                fields.get(name).ok_or_else(|| format!("no {name}"))?;
            }
            known(fields.get("status"), &STATUSES)?;
            known(fields.get("priority"), &PRIORITIES)?;
        }
        ClientVariant::TypeScript => {}
    }
    Ok(())
}

/// Checks that this variant's client accepts a result.
///
/// # Errors
/// The reason why it refuses the result.
pub fn result(make: ClientVariant, fields: &HashMap<String, String>) -> Result<(), String> {
    let field = |name: &str| fields.get(name).ok_or_else(|| format!("no {name}"));
    let status = field("status")?;
    if !["completed", "failed"].contains(&&**status) {
        return Err(format!("status {status}"));
    }
    time(make, field("completed_at")?)?;
    let took = field("duration_ms")?;
    took.parse::<u64>()
        .map_err(|error| format!("duration_ms {took}: {error}"))?;
    match (status.as_str(), fields.get("result"), fields.get("error")) {
        ("completed", Some(json), None) => {
            let json = serde_json::from_str::<Value>(json);
            json.map(drop).map_err(|error| format!("result: {error}"))
        }
        ("completed", None, None) | ("failed", None, Some(_)) => Ok(()),
        odd => Err(format!("{odd:?}")),
    }
}

/// Checks that this variant's client goes on to the result when it receives this message. The client in Go gives up
/// on any other message.
///
/// # Errors
/// The client does not accept the message.
pub fn word(make: ClientVariant, word: &str) -> Result<(), String> {
    match make {
        ClientVariant::Go | ClientVariant::GoRouted if word != "ready" => {
            Err(format!("it gives up on `{word}`"))
        }
        _ => Ok(()),
    }
}

fn known(value: Option<&Value>, words: &[&str]) -> Result<(), String> {
    let word = value.and_then(Value::as_str);
    match word.filter(|word| words.contains(word)) {
        Some(_) => Ok(()),
        None => Err(format!("{value:?} is none of {words:?}")),
    }
}

/// Checks a time. Go requires RFC 3339 with a zone and any number of digits. Python up to 3.10 accepts three or six
/// digits or none, and no zone is needed.
fn time(make: ClientVariant, text: &str) -> Result<(), String> {
    let refused = || format!("no time: {text}");
    let (whole, rest) = text.split_at_checked(19).ok_or_else(refused)?;
    let shape = |(at, c): (usize, char)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        _ => c.is_ascii_digit(),
    };
    let digits = rest.strip_prefix('.').map_or(0, |rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        end.unwrap_or(rest.len())
    });
    let zone = &rest[if digits > 0 { digits + 1 } else { 0 }..];
    let offset = |zone: &str| zone.len() == 6 && zone.starts_with(['+', '-']) && &zone[3..4] == ":";
    let zoned = zone == "Z" || offset(zone);
    let fits = match make {
        ClientVariant::Go | ClientVariant::GoRouted => zoned && digits <= 9,
        ClientVariant::Python => (zoned || zone.is_empty()) && [0, 3, 6].contains(&digits),
        ClientVariant::TypeScript => zoned || zone.is_empty(),
    };
    match whole.chars().enumerate().all(shape) && fits {
        true => Ok(()),
        false => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_make_refuses() {
        let nine = "2026-11-20T11:33:47.288434556Z";
        assert!(
            time(ClientVariant::Go, nine).is_ok() && time(ClientVariant::Python, nine).is_err()
        );
        let naive = "2026-11-20T11:33:54.004364";
        assert!(
            time(ClientVariant::Go, naive).is_err() && time(ClientVariant::Python, naive).is_ok()
        );
        for make in ClientVariant::ALL {
            assert!(time(make, "2026-11-20T11:33:54.004364Z").is_ok(), "{make}");
            assert!(time(make, "soon").is_err() && time(make, "2026-11-20 11:33:54Z").is_err());
        }
        assert!(
            word(ClientVariant::Go, "completed").is_err()
                && word(ClientVariant::Python, "completed").is_ok()
        );
        let cron = r#"{"id":"","name":"n","payload":1,"status":"","priority":"normal","created_at":"0001-01-01T00:00:00Z","updated_at":"0001-01-01T00:00:00Z"}"#;
        assert!(
            record(ClientVariant::Go, cron).is_ok() && record(ClientVariant::Python, cron).is_err()
        );
        assert!(
            record(ClientVariant::Python, "{}").is_err()
                && record(ClientVariant::TypeScript, "{}").is_ok()
        );
        assert!(record(ClientVariant::Go, r#"{"attempts":"1"}"#).is_err());
    }

    #[test]
    fn a_result_is_whole() {
        let of = |fields: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            result(ClientVariant::Go, &fields.iter().map(own).collect())
        };
        let ended = [
            ("status", "completed"),
            ("completed_at", "2026-11-20T11:33:57Z"),
            ("duration_ms", "17"),
        ];
        assert_eq!(of(&ended), Ok(()));
        assert!(of(&[&ended[..], &[("result", "{")]].concat()).is_err());
        assert!(of(&[&ended[..], &[("error", "boom")]].concat()).is_err());
        assert!(of(&ended[..2]).is_err() && of(&[]).is_err());
    }
}
