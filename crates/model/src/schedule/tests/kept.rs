//! Round trip of stored schedules.

use super::{ms, schedule, timing};
use crate::job::{Unique, Until};
use crate::route::{Fallback, Priority};
use crate::schedule::Schedule;
use crate::schedule::policy::{CatchUp, Overlap};

fn full() -> Schedule {
    let mut timing = timing("30 2 * * MON#1", "Europe/Brussels");
    timing.start = Some(ms("2026-01-01"));
    timing.end = Some(ms("2030-01-01"));
    let mut full = schedule(timing);
    full.catch_up = CatchUp::All(7);
    full.overlap = Overlap::Allow;
    let job = &mut full.job;
    job.id = "nightly".parse().unwrap();
    job.route.group = Some("io".parse().unwrap());
    job.route.instance = Some("1".parse().unwrap());
    job.route.priority = Priority::Low;
    job.fallback = Some(Fallback::Group);
    job.input = Some(vec![0, 159, 146, 150]);
    job.caller_id = "me".to_owned();
    job.context_id = "here".to_owned();
    (job.timeout, job.retries, job.concurrent) = (7, 3, false);
    job.env_vars.insert("A".to_owned(), "b\"".to_owned());
    job.log_path = Some("x.log".to_owned());
    job.backoff_ms = Some(250);
    job.key = Some("tenant 1".to_owned());
    job.unique = Some(Unique::throttle("report", 5000));
    full
}

fn again(schedule: &Schedule) -> Schedule {
    let input = schedule.input().map(<[u8]>::to_vec);
    Schedule::decode(&schedule.name, schedule.encode().as_bytes(), input).unwrap()
}

#[test]
fn every_part_comes_back() {
    assert_eq!(again(&full()), full());
    let mut plain = schedule(timing("@every 90s", "UTC"));
    plain.job.id = "nightly".parse().unwrap();
    for until in [Until::Done, Until::Started] {
        let mut unique = Unique::debounce("x");
        unique.until = until;
        plain.job.unique = Some(unique);
        assert_eq!(again(&plain), plain);
    }
}

#[test]
fn what_a_later_release_adds_is_kept() {
    let record = r#"{"rhythm":"@daily","catch_up":"one","overlap":"skip","later":[1],
        "job":{"type":"osis","script":"1","timeout":9,"newer":{"a":2}}}"#;
    let name = "nightly".parse().unwrap();
    let read = Schedule::decode(&name, record.as_bytes(), None).unwrap();
    let written = again(&read).encode();
    assert!(
        written.contains(r#""later":[1]"#) && written.contains(r#""newer":{"a":2}"#),
        "{written}"
    );
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let good = full().encode();
    for bad in [
        "".to_owned(),
        "[]".to_owned(),
        good.replace("MON#1", "MON#9"),
        good.replace("Europe/Brussels", "Europe/Atlantis"),
        good.replace("all:7", "some"),
        good.replace("allow", "perhaps"),
        good.replace("5000", "\"soon\""),
        good.replace("keep", "lose"),
        good.replace("\"osis\"", "\"o:s\""),
        good.replace(r#""fallback":"group""#, r#""fallback":"x""#),
    ] {
        let name = "nightly".parse().unwrap();
        let read = Schedule::decode(&name, bad.as_bytes(), None);
        let error = read.unwrap_err().to_string();
        assert!(error.contains("nightly"), "{error}");
    }
}
