//! Reading and writing records: strict out, lenient in.

use proptest::prelude::*;

use super::*;
use crate::keys::hero::JobKeys;
use crate::route::Route;
use crate::state::Status;
use crate::stored;

fn new_job() -> NewJob {
    NewJob::new(
        "j1".parse().unwrap(),
        Route::to("osis".parse().unwrap()),
        "40 + 2",
    )
}

fn read(fields: &[(&str, &str)]) -> Job {
    Job::from_fields(
        "j1",
        fields
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())),
    )
}

/// Returns the fields that the script stores, without status and times.
fn record(job: &NewJob) -> Vec<(String, Vec<u8>)> {
    let keys = JobKeys::default();
    let id = (field::ID, job.id.as_str().into());
    let script_type = (field::SCRIPT_TYPE, job.route.script_type.as_str().into());
    let names = stored::HERO.values.iter().copied();
    let values = names.zip(stored::values(&keys, job));
    let fields = [id, script_type].into_iter().chain(values);
    let fields = fields.chain(stored::options(&keys, job));
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[test]
fn what_is_written_reads_back() {
    let mut job = new_job();
    job.env_vars.insert("A".into(), "1 \"x\"".into());
    job.input = Some(vec![0, 255, 10]);
    job.log_path = Some("a/b.log".into());
    job.route.group = Some("io".parse().unwrap());
    job.route.instance = Some("3".parse().unwrap());
    let fields = record(&job).into_iter();
    let read = Job::from_fields("j1", fields);
    assert_eq!(read.script, b"40 + 2");
    assert_eq!(read.env_vars, job.env_vars);
    assert_eq!(read.input, job.input);
    assert_eq!(read.log_path, job.log_path);
    assert_eq!(read.route(), Some(job.route));
    assert_eq!(read.worker_id, "3");
}

#[test]
fn a_foreign_record_is_read_leniently() {
    let job = read(&[
        ("actor_id", "osis_runner_1"),
        ("script", "1"),
        ("timeout", "soon"),
        ("retries", "2"),
        ("concurrent", "false"),
        (
            "env_vars",
            "{\"A\": 1, \"B\": \"x\", \"C\": 18446744073709551616, \"D\": [1e400, -0]}",
        ),
        ("script_type", "OSIS"),
        ("novelty", "kept"),
        ("status", ""),
    ]);
    assert_eq!(job.worker_id, "osis_runner_1");
    assert_eq!(job.timeout, limits::DEFAULT_TIMEOUT);
    assert_eq!((job.retries, job.concurrent), (2, false));
    assert_eq!(job.env_vars["A"], "1");
    assert_eq!(job.env_vars["C"], "18446744073709551616");
    assert_eq!(job.env_vars["D"], "[1e400, -0]");
    assert_eq!(job.script_type.as_deref(), Some("osis"));
    assert_eq!(job.other["novelty"], b"kept");
    assert_eq!(job.status(), Some(Status::Dispatched));
}

#[test]
fn a_timeout_of_others_has_its_bound() {
    for (written, seconds) in [
        ("1", 1),
        ("604801", limits::MAX_TIMEOUT),
        ("18446744073709551615", limits::MAX_TIMEOUT),
        // More than a number holds, and less than one: it says nothing.
        ("18446744073709551616", limits::DEFAULT_TIMEOUT),
        ("0", limits::DEFAULT_TIMEOUT),
    ] {
        assert_eq!(read(&[("timeout", written)]).timeout, seconds, "{written}");
    }
}

#[test]
fn prerequisites_are_read_however_they_are_written() {
    for (written, ids) in [
        ("[]", &[][..]),
        (" { } ", &[]),
        ("null", &[]),
        ("", &[]),
        (
            r#"["a", "b c", 18446744073709551616]"#,
            &["a", "b c", "18446744073709551616"],
        ),
        (r#""a""#, &["a"]),
        ("a, b,,c", &["a", "b", "c"]),
        ("42", &["42"]),
        (r#"["a""#, &[]),
        (r#"["a", null]"#, &["a"]),
    ] {
        assert_eq!(
            read(&[("dependencies", written)]).depends_on,
            ids,
            "{written}"
        );
    }
    let both = read(&[("prerequisites", "a,b"), ("dependencies", r#"["b","c"]"#)]);
    assert_eq!(both.depends_on, ["a", "b", "c"]);
}

#[test]
fn nothing_tells_a_secret_in_passing() {
    let mut job = new_job();
    job.env_vars.insert("API_TOKEN".into(), "hunter22".into());
    let fields = record(&job).into_iter();
    let read = Job::from_fields("j1", fields);
    assert_eq!(read.env_vars["API_TOKEN"], "hunter22");
    for said in [format!("{job:?}"), format!("{read:?}")] {
        assert!(
            said.contains("API_TOKEN") && !said.contains("hunter"),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused = |change: fn(&mut NewJob)| {
        let mut job = new_job();
        change(&mut job);
        job.check().unwrap_err()
    };
    assert!(matches!(
        refused(|j| j.script = " \n".into()),
        Invalid::EmptyScript { .. }
    ));
    assert!(matches!(
        refused(|j| j.script = "x".repeat(limits::MAX_SCRIPT + 1)),
        Invalid::TooLarge { what: "script", .. }
    ));
    assert!(matches!(
        refused(|j| j.input = Some(vec![0; limits::MAX_INPUT + 1])),
        Invalid::TooLarge { what: "input", .. }
    ));
    assert!(matches!(
        refused(|j| j.timeout = 0),
        Invalid::Timeout { .. }
    ));
    assert!(matches!(
        refused(|j| j.timeout = u64::MAX),
        Invalid::Timeout { .. }
    ));
    for seconds in [0, limits::MAX_TIMEOUT + 1] {
        let mut job = new_job();
        job.prerequisite_timeout = Some(seconds);
        assert!(matches!(job.check(), Err(Invalid::Timeout { .. })));
    }
    assert!(matches!(
        refused(|j| j.retries = 101),
        Invalid::Retries { .. }
    ));
    assert!(matches!(
        refused(|j| {
            j.env_vars.insert("A=B".into(), String::new());
        }),
        Invalid::EnvName { .. }
    ));
    assert!(matches!(
        refused(|j| {
            j.env_vars.insert("A".into(), "\0".into());
        }),
        Invalid::EnvValue { .. }
    ));
    for change in [
        |j: &mut NewJob| j.script = "a\0".into(),
        |j: &mut NewJob| j.caller_id = "\0".into(),
        |j: &mut NewJob| j.context_id = "\0".into(),
    ] {
        assert!(matches!(refused(change), Invalid::Nul { .. }));
    }
    assert!(matches!(
        refused(|j| j.caller_id = "x".repeat(limits::MAX_CALLER + 1)),
        Invalid::TooLarge { .. }
    ));
    assert!(matches!(
        refused(|j| j.log_path = Some("../a".into())),
        Invalid::LogPath { .. }
    ));
    assert!(new_job().check().is_ok());
}

proptest! {
    #[test]
    fn no_record_is_too_strange_to_read(
        fields in proptest::collection::vec(("[a-z_]{0,12}", proptest::collection::vec(any::<u8>(), 0..20)), 0..8)
    ) {
        let job = Job::from_fields("x", fields);
        prop_assert_eq!(job.id, "x");
    }
}
