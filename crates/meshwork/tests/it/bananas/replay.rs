//! Captured writes of Bananas' own clients and schedulers, replayed to a native worker: each job ends, and their
//! clients can read its result. `captured.jsonl` has a line for each scenario that was captured from the real programs
//! (in Go at commits 53fa752 and 005d22f, in Python and TypeScript at 5bf01cb).

use std::collections::HashMap;

use meshwork::runtime::JobContext;
use meshwork_conformance::accept;
use meshwork_model::bananas::{ClientVariant, Status};
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use serde_json::Value;

use super::support::{BOUND, Ground};

const CAPTURED: &str = include_str!("captured.jsonl");
const SCHEDULED: &str = "bananas:queue:scheduled";

/// A job that was submitted.
struct Seen {
    scenario: String,
    id: String,
    list: String,
    record: Option<String>,
}

fn captured() -> Vec<Value> {
    let lines = CAPTURED.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn seen() -> Vec<Seen> {
    let mut seen = Vec::new();
    for line in captured() {
        for job in line["jobs"].as_array().unwrap() {
            seen.push(Seen {
                scenario: line["scenario"].as_str().unwrap().to_owned(),
                id: job["id"].as_str().unwrap().to_owned(),
                list: job["to"].as_str().unwrap().to_owned(),
                record: job["record"].as_str().map(str::to_owned),
            });
        }
    }
    seen
}

/// As its client or scheduler did. Its time has come, if it has one.
async fn play(ground: &Ground, job: &Seen) {
    let result = format!("bananas:result:{}", job.id);
    ground.say::<()>(&["DEL", &result]).await;
    if let Some(record) = &job.record {
        let key = format!("bananas:job:{}", job.id);
        ground.say::<()>(&["SET", &key, record]).await;
    }
    match job.list.as_str() {
        SCHEDULED => ground.say::<()>(&["ZADD", SCHEDULED, "1", &job.id]).await,
        list => ground.say::<()>(&["LPUSH", list, &job.id]).await,
    }
}

/// The outcome of the job: the end of a run before a retry is none.
async fn ended(ground: &Ground, job: &Seen) -> (HashMap<String, String>, String) {
    let key = format!("bananas:result:{}", job.id);
    eventually(&job.scenario, BOUND, async || {
        let result: HashMap<String, String> = ground.say(&["HGETALL", &key]).await;
        let record = format!("bananas:job:{}", job.id);
        let record: Option<String> = ground.say(&["GET", &record]).await;
        let goes_on = ["\"pending\"", "\"scheduled\""];
        let over = match result.get("status").map(String::as_str) {
            Some("completed") => true,
            Some("failed") => !goes_on
                .iter()
                .any(|it| record.as_ref().is_some_and(|text| text.contains(it))),
            _ => false,
        };
        over.then(|| (result.clone(), record.unwrap_or_default()))
    })
    .await
}

/// The text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(inner, _)| inner)
}

/// Returns the record before its run: only its status and one time have changed, and its due time is gone.
fn only_its_end(job: &Seen, after: &str) {
    let before = job.record.as_ref().unwrap();
    let blank = if before.contains("\": ") { " " } else { "" };
    let field = |text: &str, name: &str| {
        let from = format!("\"{name}\":{blank}\"");
        between(text, &from, "\"").map(str::to_owned)
    };
    let mut expected = before.clone();
    for name in ["status", "updated_at"] {
        let value =
            |text: &str| field(text, name).map(|value| format!("\"{name}\":{blank}\"{value}\""));
        expected = expected.replace(&value(before).unwrap(), &value(after).unwrap());
    }
    let waited = field(before, "scheduled_for").filter(|_| job.list == SCHEDULED);
    if let Some(time) = waited {
        let whole = format!(",{blank}\"scheduled_for\":{blank}\"{time}\"");
        assert!(expected.contains(&whole));
        expected = expected.replace(&whole, "");
    }
    assert_eq!(after, expected, "{}", job.scenario);
    assert_eq!(field(after, "status").as_deref(), Some("completed"));
}

/// Whatever a client could read before it can read after.
fn is_accepted(job: &Seen, result: &HashMap<String, String>, after: &str) {
    for make in ClientVariant::ALL {
        let accepted = accept::result(make, result);
        assert_eq!(accepted, Ok(()), "{} by {make}: {result:?}", job.scenario);
        let read = job
            .record
            .as_ref()
            .map(|record| accept::record(make, record));
        if read == Some(Ok(())) {
            let accepted = accept::record(make, after);
            assert_eq!(accepted, Ok(()), "{} by {make}: {after}", job.scenario);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_their_clients_wrote_is_run() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let mail = async |mail: Value, _: JobContext| Ok::<_, String>(mail["to"].clone());
    let count = async |items: Vec<String>, _: JobContext| Ok::<_, String>(items.len());
    let worker = ground
        .worker()
        .handle("send_email", mail)
        .handle("count_items", count)
        .routes("gpu,default".parse().unwrap())
        .start()
        .await
        .unwrap();
    let seen = seen();
    assert!(seen.len() > 60, "{}", seen.len());
    for job in &seen {
        play(&ground, job).await;
        if job.id.is_empty() {
            // Bananas' cron gives no other id to any of its jobs.
            ended(&ground, job).await;
        }
    }
    let mut dead = Vec::new();
    for job in &seen {
        let (result, record) = ended(&ground, job).await;
        is_accepted(job, &result, &record);
        if result.get("status").is_some_and(|word| word == "completed") {
            if !job.id.is_empty() {
                only_its_end(job, &record);
            }
            let sent: Value = serde_json::from_str(job.record.as_ref().unwrap()).unwrap();
            let given: Value = serde_json::from_str(&result["result"]).unwrap();
            assert_eq!(given, sent["payload"]["to"], "{}", job.scenario);
        } else {
            dead.push(job.scenario.clone());
        }
    }
    let expected = [
        "corrupt-missing_and_bad_json",
        "corrupt-missing_and_bad_json",
        "fail-handler_error_goA",
        "fail-handler_error_py_goD",
        "fail-no_handler_py_goD",
        "scheduled-route_goD_scheduler_and_ghost",
    ];
    assert_eq!(dead, expected);
    ground.quiet().await;
    let letters: usize = ground.say(&["LLEN", "bananas:queue:dead"]).await;
    assert_eq!(letters, expected.len());
    worker.stop().await;
}

/// Results that their clients and a worker wrote.
#[tokio::test(flavor = "multi_thread")]
async fn what_they_answered_is_read() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let mut read = 0;
    for line in captured() {
        let scenario = line["scenario"].as_str().unwrap().to_owned();
        for result in line["results"].as_array().into_iter().flatten() {
            let id = result["id"].as_str().unwrap();
            let fields = result["fields"].as_array().unwrap();
            let fields: Vec<&str> = fields.iter().map(|it| it.as_str().unwrap()).collect();
            let key = format!("bananas:result:{id}");
            ground
                .say::<()>(&[&["HSET", &key], &fields[..]].concat())
                .await;
            let outcome = ground.client.result(&JobId::foreign(id.to_owned())).await;
            let outcome = outcome.unwrap().unwrap();
            assert_eq!(
                outcome.succeeded,
                !scenario.contains("failed"),
                "{scenario}"
            );
            let value = |name: &str| {
                let at = fields.iter().position(|field| *field == name)?;
                Some(fields[at + 1].to_owned())
            };
            assert_eq!(outcome.result, value("result"), "{scenario}");
            assert_eq!(outcome.error, value("error"), "{scenario}");
            assert_eq!(
                Some(outcome.completed_at),
                value("completed_at"),
                "{scenario}"
            );
            let took = outcome.duration_ms.map(|ms| ms.to_string());
            assert_eq!(took, value("duration_ms"), "{scenario}");
            read += 1;
        }
    }
    assert_eq!(read, 6);
}

/// The words of the records are those that we know.
#[test]
fn their_words_are_known() {
    for job in seen() {
        let Some(record) = job.record.filter(|record| record.starts_with("{\"")) else {
            continue;
        };
        let record = meshwork_model::bananas::Record::read(record.as_bytes()).unwrap();
        let cron = job.id.is_empty();
        let word = record.status();
        assert!(
            cron || matches!(word, Some(Status::Pending | Status::Scheduled)),
            "{}",
            job.scenario
        );
    }
}
