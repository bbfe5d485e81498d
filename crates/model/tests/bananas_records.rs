//! Records of Meshwork's client equal those of each of Bananas' client implementations, byte for byte. The expected
//! ones were captured from the real clients, with replaced ids and times.

use meshwork_model::bananas::{ClientVariant, NewJob, Record};
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::route::Priority;
use serde_json::Value;

/// A line for each record: the implementation, the scenario, the record and the key of its list.
const CAPTURED: &str = include_str!("bananas/records.jsonl");
/// Due time of delayed jobs, in milliseconds since 1970.
const DUE: u64 = 1_795_178_025_054;

/// Calls `check` for each record: the implementation, the scenario, the record, the key.
fn each(mut check: impl FnMut(ClientVariant, &str, &str, &str)) {
    for line in CAPTURED.lines() {
        let line: Value = serde_json::from_str(line).expect("what was captured is sound");
        let word = |name: &str| line[name].as_str().expect("what was captured is sound");
        let peer = word("peer").parse().expect("what was captured is sound");
        check(peer, word("scenario"), word("record"), word("pushed_to"));
    }
}

/// The payload as it stands in a record: it is the caller's, not the client's.
fn payload(record: &str) -> String {
    let record = record.replace("TIME", "");
    Record::read(record.as_bytes())
        .expect("what was captured is sound")
        .payload()
        .to_owned()
}

fn request_of(scenario: &str, payload: &str) -> NewJob {
    let mut job = NewJob::new(
        "ID".parse().expect("what was captured is sound"),
        "send_email",
        payload,
    );
    match scenario {
        "high" => job.priority = Priority::High,
        "low" => job.priority = Priority::Low,
        "description" => job.description = "Welcome email".to_owned(),
        "route" | "scheduled_route" => {
            job.route = Some("gpu".parse().expect("what was captured is sound"));
        }
        "default_route" => job.route = Some("default".parse().expect("what was captured is sound")),
        _ => {}
    }
    if scenario.starts_with("scheduled") {
        job.at_ms = Some(DUE);
    }
    job
}

/// The text with its times replaced.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('"').enumerate() {
        let is_time = part.len() > 19 && part.as_bytes()[10] == b'T' && part.starts_with("20");
        out.push_str(if at > 0 { "\"" } else { "" });
        out.push_str(if is_time { "TIME" } else { part });
    }
    out
}

#[test]
fn our_records_are_theirs() {
    let mut seen = 0;
    each(|peer, scenario, record, _| {
        // Go's client schedules by pushing the job and failing it: there is nothing to be equal to but the
        // record that it pushed first.
        let job = request_of(scenario, &payload(record));
        let ours = job.record(peer).unwrap().at(DUE - 3_600_000);
        assert_eq!(timeless(&ours), record, "{peer} {scenario}");
        seen += 1;
    });
    assert!(seen > 30, "{seen}");
}

#[test]
fn our_jobs_stand_where_theirs_do() {
    let keys = BananasKeys::default();
    each(|peer, scenario, record, pushed_to| {
        let job = request_of(scenario, &payload(record));
        let list = job.list(peer, &keys);
        let go = matches!(peer, ClientVariant::Go | ClientVariant::GoRouted);
        // Go's client pushes a job that is to wait.
        let ours = if job.at_ms.is_some() && !go {
            keys.scheduled()
        } else {
            list
        };
        assert_eq!(ours, pushed_to, "{peer} {scenario}");
    });
}

#[test]
fn a_worker_of_ours_reads_all_of_them() {
    each(|peer, scenario, record, _| {
        let record = record.replace("TIME", "2026-11-20T11:33:45.140Z");
        let read = Record::read(record.as_bytes()).unwrap();
        assert_eq!(read.text(), record);
        assert_eq!((read.name(), read.attempts()), ("send_email", 0), "{peer}");
        assert_eq!(read.max_retries(), Some(3));
        let routed = scenario.ends_with("route") && !scenario.starts_with("default");
        let route = read.route().unwrap();
        assert_eq!(route.as_str(), if routed { "gpu" } else { "default" });
    });
}
