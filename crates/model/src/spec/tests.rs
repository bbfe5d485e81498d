//! Tests of jobs in JSON.

use serde_json::json;

use super::*;
use crate::read;
use crate::route::Priority;

fn job(text: &str) -> Result<NewJob, String> {
    let spec: JobSpec = read::from_json(text.as_bytes())?;
    let route = crate::route::Route::to("osis".parse().unwrap());
    let mut job = NewJob::new("j".parse().unwrap(), route, "1");
    let id = |text: &str| {
        text.parse()
            .map_err(|error: crate::name::NameError| error.to_string())
    };
    let place = SpecPlace {
        id: &id,
        awaited: &id,
        now_ms: 1000,
        zone: &Zone::default(),
    };
    spec.apply(&mut job, &place)
        .map_err(|error| error.to_string())?;
    Ok(job)
}

#[test]
fn durations_have_one_spelling_and_inputs_are_any_value() {
    for (given, ms) in [
        ("90", 90_000),
        ("\"90s\"", 90_000),
        ("1.5", 1500),
        ("\"1m30s\"", 90_000),
        ("\"0.5\"", 500),
    ] {
        let job = job(&format!(
            r#"{{"backoff":{given},"start_timeout":{given},"delay":{given},"timeout":{given}}}"#
        ));
        let job = job.unwrap();
        let (backoff, start) = (job.backoff_ms, job.start_timeout_ms);
        assert_eq!(
            (backoff, start, job.when),
            (Some(ms), Some(ms), Some(When::In(ms)))
        );
        assert_eq!(job.timeout, ms.div_ceil(1000));
    }
    for (given, input) in [
        (r#""a\n""#, "a\n"),
        (r#"{"a": [1.50]}"#, r#"{"a": [1.50]}"#),
        ("7", "7"),
        ("[]", "[]"),
    ] {
        let job = job(&format!(r#"{{"input":{given}}}"#)).unwrap();
        assert_eq!(job.input, Some(input.as_bytes().to_vec()));
    }
}

#[test]
fn old_spellings_stay_readable() {
    let job =
        job(r#"{"in":"1h","context_id":"c","priority":2,"sandbox":"strict","throttle":"n=5s"}"#)
            .unwrap();
    assert_eq!(
        (job.when, job.context_id.as_str()),
        (Some(When::In(3_600_000)), "c")
    );
    assert_eq!(
        (job.route.priority, job.sandbox.to_string()),
        (Priority::Low, "strict".to_owned())
    );
    assert_eq!(job.unique, Some(Unique::throttle("n", 5000)));
}

#[test]
fn times_are_of_the_zone() {
    for (at, tz, ms) in [
        ("1970-01-02T00:00:00Z", "UTC", 86_400_000),
        ("1970-01-02T01:00:00+01:00", "UTC", 86_400_000),
        ("1970-01-02 01:00", "Europe/Brussels", 86_400_000),
    ] {
        let job = job(&json!({"at": at, "tz": tz}).to_string()).unwrap();
        assert_eq!(job.when, Some(When::At(ms)), "{at}");
    }
    assert_eq!(
        job(r#"{"at":"+10m"}"#).unwrap().when,
        Some(When::In(600_000))
    );
}

#[test]
fn faults_begin_with_the_field() {
    for (text, fault) in [
        (r#"{"tpye":"osis"}"#, "did you mean `type`?"),
        (r#"{"backoff":3601}"#, "backoff: give 0 to 3600 seconds"),
        (r#"{"timeout":"8d"}"#, "timeout: give 1 to 604800 seconds"),
        (
            r#"{"start_timeout":0}"#,
            "start_timeout: give 0.001 to 316224000 seconds",
        ),
        (
            r#"{"retries":"3"}"#,
            "retries: invalid type: string \"3\", expected a whole number",
        ),
        (
            r#"{"delay":"soon"}"#,
            "delay: invalid value: string \"soon\", expected seconds as a number",
        ),
        (r#"{"timeout":-1}"#, "timeout: invalid value"),
        (
            r#"{"sandbox":{"memory":"much"}}"#,
            "sandbox.memory: invalid value",
        ),
        (
            r#"{"sandbox":"lax"}"#,
            "sandbox: `lax` is no sandbox profile",
        ),
        (r#"{"tags":["a b"]}"#, "tags[0]: the tag"),
        (r#"{"priority":"soon"}"#, "priority: `soon` is no priority"),
        (r#"{"id":"a b"}"#, "id: the job id"),
        (r#"{"at":"soon"}"#, "at: \"soon\" is no time"),
        (r#"{"group":"g","route":"r"}"#, "group and route: give one"),
        (
            r#"{"script":"1","payload":1}"#,
            "script and payload: give one",
        ),
        (r#"{"at":"1970-01-02","delay":1}"#, "at and delay: give one"),
        (
            r#"{"delay":1,"debounce":"n=5s"}"#,
            "delay and debounce: give one",
        ),
        (
            r#"{"unique":"u","throttle":"n=5s"}"#,
            "unique and throttle: give one",
        ),
        (
            r#"{"unique":"u","unique_for":1,"unique_until":"done"}"#,
            "unique_for and unique_until: give one",
        ),
        (
            r#"{"on_duplicate":"keep"}"#,
            "on_duplicate: give `unique` too",
        ),
        (r#"{"debounce":"5s"}"#, "debounce: write NAME=DURATION"),
        (r#"{"throttle":"=5s"}"#, "throttle: write NAME=DURATION"),
        (r#"{"throttle":"a="}"#, "throttle: `` is no duration"),
        (
            r#"{"unique":"u","unique_until":"end"}"#,
            "unique_until: `end` is not known: done or started",
        ),
        (
            r#"{"fallback":"any"}"#,
            "fallback: `any` is no fallback: group or type",
        ),
    ] {
        let said = job(text).unwrap_err();
        assert!(said.contains(fault), "{text}: {said}");
    }
}

#[test]
fn a_job_that_is_written_is_read_again() {
    for text in [
        r#"{"script":"1"}"#,
        r#"{"script":"1","group":"g","priority":"high","input":"a","env":{"A":"1"},"timeout":"90s","retries":3,"backoff":"1500ms"}"#,
        r#"{"script":"1","instance":"i","fallback":"type","input":{"a":1.50},"start_timeout":"7ms","sandbox":{"profile":"strict","memory":"64M","cpu":"20s"}}"#,
        r#"{"script":"1","tags":["a","b"],"depends_on":["a","n=b"],"on_failure":"continue","prerequisite_timeout":60,"exclusive":true}"#,
        r#"{"script":"1","caller":"c","caller_context":"d","log_path":"l","batch":"b","at":"2100-01-01T00:00:00.005Z","key":"k"}"#,
        r#"{"script":"1","delay":"1h","unique":"u","unique_for":"5s","on_duplicate":"replace"}"#,
        r#"{"script":"1","unique":"u","unique_until":"started","on_duplicate":"refuse"}"#,
        r#"{"script":"1","debounce":"n=5s"}"#,
        r#"{"script":"1","throttle":"n=5s"}"#,
    ] {
        let first = job(text).unwrap();
        let written = JobSpec::written(&first).unwrap();
        let written = serde_json::to_string(&written).unwrap();
        assert_eq!(job(&written).unwrap(), first, "{written}");
    }
    let mut bytes = job(r#"{"script":"1"}"#).unwrap();
    bytes.input = Some(vec![0xff]);
    let fault = JobSpec::written(&bytes).unwrap_err();
    assert_eq!(fault.to_string(), "input: it is no text");
}
