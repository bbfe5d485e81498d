//! Parsed and refused elements, prerequisites and queues.

use proptest::prelude::*;

use super::*;

fn keys(id: u32, layout: ContextLayout) -> ContextKeys {
    ContextKeys::new(ContextId::new(id).unwrap(), layout)
}

fn refused(keys: &ContextKeys, element: &[u8]) -> ElementFault {
    keys.parse_job(element).unwrap_err().fault
}

#[test]
fn an_element_is_the_whole_key() {
    let job = JobKey::new(12, 2001);
    let (db, prefix) = (keys(7, ContextLayout::Db), keys(7, ContextLayout::Prefix));
    assert_eq!(db.parse_job(b"job:12:2001"), Ok(job));
    assert_eq!(prefix.parse_job(b"{ctx:7}:job:12:2001"), Ok(job));
    assert_eq!(
        prefix.parse_message(b"{ctx:7}:message:12:101"),
        Ok(MessageKey::new(12, 101))
    );
}

#[test]
fn no_element_leads_into_another_context() {
    let other = ContextId::new(8).unwrap();
    for layout in ContextLayout::ALL {
        let keys = keys(7, layout);
        assert_eq!(
            refused(&keys, b"{ctx:8}:job:12:2001"),
            ElementFault::OtherContext { other }
        );
        let error = keys.parse_job(b"{ctx:8}:job:12:2001").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#""{ctx:8}:job:12:2001" names no job of context 7: it is a key of context 8"#
        );
    }
}

#[test]
fn an_element_of_the_other_layout_is_refused() {
    let plain = refused(&keys(7, ContextLayout::Prefix), b"job:12:2001");
    assert!(matches!(plain, ElementFault::Prefix { .. }), "{plain}");
    let tagged = refused(&keys(7, ContextLayout::Db), b"{ctx:7}:job:12:2001");
    assert!(matches!(tagged, ElementFault::Prefix { .. }), "{tagged}");
}

#[test]
fn what_names_no_job_is_refused() {
    let db = keys(7, ContextLayout::Db);
    for bad in [
        &b""[..],
        b"12",
        b"job:12",
        b"job:12:2001:3",
        b"job:012:2001",
        b"job:12:4294967296",
        b"job:-1:2",
        b"job:12:2001\n",
        b" job:12:2001",
        b"JOB:12:2001",
        b"context:7",
        b"flow:33",
        b"message:12:101",
        b"actor:12",
        b"mw:lease",
        b"{ctx:7:job:1:2",
        b"{ctx:07}:job:1:2",
    ] {
        let fault = refused(&db, bad);
        assert!(matches!(fault, ElementFault::Name(_)), "{bad:?}: {fault}");
    }
    assert_eq!(refused(&db, b"job:\xff:1"), ElementFault::NotText);
    let long = refused(&db, &[b'1'; 65]);
    assert_eq!(long, ElementFault::TooLong { len: 65 });
    let prefix = keys(7, ContextLayout::Prefix);
    let twice = refused(&prefix, b"{ctx:7}:{ctx:8}:job:1:2");
    assert!(matches!(twice, ElementFault::Name(_)), "{twice}");
}

#[test]
fn the_longest_key_is_no_longer_than_an_element() {
    let keys = keys(u32::MAX, ContextLayout::Prefix);
    let longest = keys.message(MessageKey::new(u32::MAX, u32::MAX));
    assert!(longest.len() <= MAX_ELEMENT);
    assert!(keys.parse_message(longest.as_bytes()).is_ok());
}

#[test]
fn a_prerequisite_is_a_key_or_a_gate() {
    let (db, prefix) = (keys(7, ContextLayout::Db), keys(7, ContextLayout::Prefix));
    for keys in [&db, &prefix] {
        let job = Prerequisite::Job(JobKey::new(12, 1));
        let parse = |text: &str| keys.parse_prerequisite(text);
        assert_eq!(parse("job:12:1"), Ok(job.clone()));
        assert_eq!(parse(&keys.job(JobKey::new(12, 1))), Ok(job));
        assert_eq!(parse("flow:33"), Ok(Prerequisite::Flow(FlowId(33))));
        let message = Prerequisite::Message(MessageKey::new(1, 2));
        assert_eq!(parse("message:1:2"), Ok(message));
        for gate in ["approved by Ann", "a:b", "jobs", "job"] {
            assert_eq!(parse(gate), Ok(Prerequisite::Gate(gate.to_owned())));
        }
        for bad in [
            "",
            "a\nb",
            "job:1",
            "job:1:x",
            "flow:",
            "flow:01",
            "message:1:2:3",
            "{ctx:8}:job:1:2",
            "{ctx:7}:queue:v",
            "{ctx:x}:job:1:2",
            &"x".repeat(MAX_GATE + 1),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
    assert!(db.parse_prerequisite("{ctx:7}:job:1:2").is_err());
}

#[test]
fn queues_are_named_and_taken_apart() {
    let keys = keys(7, ContextLayout::Prefix);
    let whole = "{ctx:7}:queue:python:group:io:prio:0";
    for text in ["python:group:io:prio:high", whole] {
        assert_eq!(keys.parse_work_queue(text).as_deref(), Ok(whole));
    }
    let parts = keys.queue_parts(whole).unwrap();
    assert_eq!(parts.script_type, "python");
    assert_eq!(parts.group.as_deref(), Some("io"));
    assert_eq!(keys.queue_parts("{ctx:8}:queue:python"), None);
    assert_eq!(keys.queue_parts("queue:python"), None);
}

fn layouts() -> impl Strategy<Value = ContextLayout> {
    prop_oneof![Just(ContextLayout::Db), Just(ContextLayout::Prefix)]
}

proptest! {
    #[test]
    fn every_key_comes_back(id in 1..=u32::MAX, caller: u32, number: u32, layout in layouts()) {
        let keys = keys(id, layout);
        let job = JobKey::new(caller, number);
        prop_assert_eq!(keys.parse_job(keys.job(job).as_bytes()), Ok(job));
        let message = MessageKey::new(caller, number);
        prop_assert_eq!(keys.parse_message(keys.message(message).as_bytes()), Ok(message));
    }

    #[test]
    fn only_the_key_itself_is_taken(
        element in prop_oneof![
            "(\\{ctx:[0-9]{1,3}\\}:)?(job|message):[0-9]{0,11}:[0-9]{0,11}(:[0-9])?",
            "\\PC{0,70}",
        ],
        id in 1..200_u32,
        layout in layouts(),
    ) {
        let keys = keys(id, layout);
        if let Ok(job) = keys.parse_job(element.as_bytes()) {
            prop_assert_eq!(keys.job(job), element);
        }
    }
}
