//! Messages from and to hashes, and their timeouts.

use super::*;
use crate::context::tests::{bytes, pairs};
use crate::context::{LogLevel, MessageEvent};
use crate::keys::context::JobKey;

const KEY: MessageKey = MessageKey::new(12, 101);

fn context(id: u32) -> ContextId {
    ContextId::new(id).unwrap()
}

fn read(record: &[(&str, &str)]) -> Result<Message, RecordError> {
    Message::from_fields(context(7), KEY, bytes(record))
}

fn chat() -> Message {
    Message::new(context(7), KEY, MessageType::Chat, "hello", 1000)
}

#[test]
fn the_fields_of_the_catalogue() {
    let node = "ab".repeat(32);
    let record = [
        ("id", "101"),
        ("caller_id", "12"),
        ("context_id", "7"),
        ("message", "please"),
        ("message_type", "job"),
        ("message_format_type", "md"),
        ("timeout", "10"),
        ("timeout_ack", "20"),
        ("timeout_result", "30"),
        ("job", "[]"),
        ("logs", r#"[{"at":5,"level":"info","text":"created"}]"#),
        ("created_at", "1700000000"),
        ("updated_at", "1700000001"),
        ("status", "acknowledged"),
        ("target_context", "8"),
        ("target_node", &node),
        ("topic", "runner20"),
        ("envelope", "{}"),
    ];
    let message = read(&record).unwrap();
    assert_eq!(message.key(), KEY);
    assert_eq!(message.target_context, Some(context(8)));
    assert_eq!(message.to_fields(), pairs(&record));
}

#[test]
fn a_message_carries_jobs() {
    let job = |id| {
        let v = "v".parse().unwrap();
        ContextJob::new(context(7), JobKey::new(12, id), v, "println(1)", 5)
    };
    let message = Message {
        message_type: MessageType::Job,
        job: vec![job(1), job(2)],
        ..chat()
    };
    let fields = message.to_fields();
    let (_, json) = fields.iter().find(|(name, _)| name == "job").unwrap();
    assert!(json.contains(r#""dependends":[]"#), "{json}");
    assert!(json.contains(r#""timeout":1800"#), "{json}");
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name, value.into_bytes()));
    assert_eq!(Message::from_fields(context(7), KEY, fields), Ok(message));
}

#[test]
fn one_job_stands_for_a_list_and_numbers_may_be_texts() {
    let record = [
        ("message_type", "job"),
        (
            "job",
            r#"{"id":"5","caller_id":12,"script":"1","context_id":9,"env_vars":{"A":"b"}}"#,
        ),
    ];
    let message = read(&record).unwrap();
    assert_eq!(message.job.len(), 1);
    assert_eq!(message.job[0].key(), JobKey::new(12, 5));
    assert_eq!(message.job[0].context_id, context(7));
    assert_eq!(message.job[0].env_vars["A"], "b");
}

#[test]
fn what_cannot_be_read_is_named() {
    for (field, value) in [
        ("message_type", "letter"),
        ("message_format_type", "pdf"),
        ("timeout", "0"),
        ("timeout_ack", "604801"),
        ("timeout_result", "soon"),
        ("job", "job:12:1"),
        ("job", "[1]"),
        ("target_context", "0"),
        ("target_context", "07"),
        ("target_node", "localhost"),
        ("status", "sent"),
    ] {
        let record = [("message_type", "job"), (field, value)];
        let error = read(&record).unwrap_err();
        assert_eq!(
            (error.object.as_str(), error.field),
            ("message:12:101", field)
        );
    }
    assert_eq!(read(&[]).unwrap_err().fault, FieldFault::Missing);
    let error = read(&[("message_type", "job"), ("job", r#"[{"id":1}]"#)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the job of a message: the field `caller_id` is missing"
    );
}

#[test]
fn logs_never_hold_up_a_message() {
    let mut message = read(&[("message_type", "chat"), ("logs", "what?")]).unwrap();
    assert!(message.logs.is_empty());
    for at in 0..150 {
        message.note(Log::new(at, LogLevel::Info, "again"));
    }
    assert_eq!(message.logs.len(), limits::MAX_LOGS);
    assert_eq!(message.logs[0].at, 50);
}

#[test]
fn a_result_is_a_job_message_with_a_final_status() {
    let message = |message_type, status| Message {
        message_type,
        status,
        ..chat()
    };
    use MessageStatus as S;
    assert!(message(MessageType::Job, S::Processed).is_result());
    assert!(message(MessageType::Job, S::Error).is_result());
    assert!(message(MessageType::Result, S::Dispatched).is_result());
    assert!(!message(MessageType::Job, S::Dispatched).is_result());
    assert!(!message(MessageType::Chat, S::Processed).is_result());
}

#[test]
fn each_timeout_counts_from_the_creation() {
    let mut message = Message {
        timeout: 10,
        timeout_ack: 20,
        timeout_result: 30,
        ..chat()
    };
    assert_eq!(message.overdue(1010, false), None);
    assert_eq!(message.overdue(1011, false), Some(Overdue::Delivery));
    assert_eq!(message.overdue(1011, true), None);
    assert_eq!(message.overdue(1021, true), Some(Overdue::Acknowledgement));
    message.status = message.status.next(MessageEvent::Acknowledge).unwrap();
    assert_eq!(message.overdue(1030, true), None);
    assert_eq!(message.overdue(1031, true), Some(Overdue::Result));
    message.status = message.status.next(MessageEvent::Process).unwrap();
    assert_eq!(message.overdue(u32::MAX, true), None);
}

#[test]
fn limits_are_named() {
    let message = Message {
        message: "x".repeat(limits::MAX_MESSAGE + 1),
        ..chat()
    };
    assert_eq!(message.check().unwrap_err().field, "message");
    let job = r#"{"id":1,"caller_id":2}"#;
    let jobs = format!("[{}]", vec![job; limits::MAX_MESSAGE_JOBS + 1].join(","));
    let error = read(&[("message_type", "job"), ("job", &jobs)]).unwrap_err();
    assert!(error.to_string().contains("at most 1000"), "{error}");
}

#[test]
fn jobs_that_need_each_other_are_a_circle() {
    use crate::keys::context::{ContextKeys, ContextLayout};
    let seven = ContextId::new(7).unwrap();
    let message = |needs: &[(u32, &[u32], &[&str])]| {
        let job = |(id, dependends, prerequisites): &(u32, &[u32], &[&str])| ContextJob {
            dependends: dependends.to_vec(),
            prerequisites: prerequisites.iter().map(|it| (*it).to_owned()).collect(),
            ..ContextJob::new(seven, JobKey::new(12, *id), "v".parse().unwrap(), "1", 0)
        };
        let key = MessageKey::new(12, 1);
        Message {
            job: needs.iter().map(job).collect(),
            ..Message::new(seven, key, MessageType::Job, "", 0)
        }
    };
    let keys = |layout| ContextKeys::new(seven, layout);
    let circle = |needs: &[(u32, &[u32], &[&str])]| {
        message(needs)
            .circle(&keys(ContextLayout::Db))
            .map(|key| key.id)
    };
    assert_eq!(circle(&[]), None);
    assert_eq!(
        circle(&[(1, &[], &[]), (2, &[1], &[]), (3, &[1, 2], &["gate"])]),
        None
    );
    // Jobs of other messages, and other messages, may end.
    assert_eq!(
        circle(&[(1, &[9], &["job:12:8", "job:13:1", "message:12:2"])]),
        None
    );
    assert_eq!(circle(&[(1, &[1], &[])]), Some(1));
    assert_eq!(circle(&[(1, &[], &["job:12:1"])]), Some(1));
    // The first one is behind the circle.
    let behind = circle(&[(1, &[2], &[]), (2, &[3], &[]), (3, &[], &["job:12:2"])]);
    assert!(matches!(behind, Some(2 | 3)), "{behind:?}");
    let own = (1, &[][..], &["message:12:1"][..]);
    assert_eq!(circle(&[own]), Some(1), "the message ends after its jobs");
    let prefixed: (u32, &[u32], &[&str]) = (1, &[], &["{ctx:7}:job:12:1"]);
    let prefixed = message(&[prefixed]);
    assert!(prefixed.circle(&keys(ContextLayout::Prefix)).is_some());
}
