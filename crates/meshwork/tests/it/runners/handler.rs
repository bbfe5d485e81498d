//! Handlers in Rust.

use std::sync::Arc;
use std::time::Duration;

use meshwork::runtime::{self, JobContext, StopReason};
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::support::{ENDLESS, PATIENCE, failure, job, output, run_of, run_with, script, within};

#[derive(Deserialize)]
struct Sum {
    left: u32,
    right: u32,
}

#[derive(Serialize)]
struct Total {
    total: u32,
}

async fn add(sum: Sum, _: JobContext) -> Result<Total, String> {
    let total = sum
        .left
        .checked_add(sum.right)
        .ok_or("the total is too large")?;
    Ok(Total { total })
}

async fn added(payload: &str) -> Report {
    run_with(&*runtime::handler(add), script(payload), PATIENCE).await
}

#[tokio::test]
async fn payload_and_result_are_json() {
    assert_eq!(
        output(&added(r#"{"left": 2, "right": 3}"#).await),
        r#"{"total":5}"#
    );
    let greet = async |name: String, _: JobContext| Ok::<_, String>(format!("Hello, {name}!"));
    let report = run_with(&*runtime::handler(greet), script("\"world\""), PATIENCE).await;
    assert_eq!(output(&report), "\"Hello, world!\"");
}

#[tokio::test]
async fn a_payload_that_does_not_fit_fails_for_good_and_says_where() {
    for (payload, named) in [
        (r#"{"left": 2}"#, "missing field `right`"),
        ("{\n\"left\": \"two\"}", "line 2 column 13"),
        ("hello", "expected value at line 1 column 1"),
    ] {
        let report = added(payload).await;
        let failure = failure(&report);
        assert_eq!(failure.kind, FailureKind::Permanent);
        assert!(
            failure
                .message
                .starts_with("the payload is not what the handler takes: ")
        );
        assert!(failure.message.contains(named), "{}", failure.message);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot open the shop")]
struct Outer(#[source] Inner);

#[derive(Debug, thiserror::Error)]
#[error("the key is lost")]
struct Inner;

#[tokio::test]
async fn an_error_is_told_with_its_causes() {
    let text = added(r#"{"left": 4294967295, "right": 1}"#).await;
    assert_eq!(
        failure(&text),
        &Failure::new(FailureKind::Script, "the total is too large")
    );
    let fail = async |(): (), _: JobContext| Err::<(), _>(Outer(Inner));
    let report = run_with(&*runtime::handler(fail), script("null"), PATIENCE).await;
    assert_eq!(
        failure(&report).message,
        "cannot open the shop: the key is lost"
    );
}

#[tokio::test]
async fn a_panic_is_a_failure_with_its_text() {
    let panic =
        async |which: u32, _: JobContext| -> Result<(), String> { panic!("number {which}") };
    let report = run_with(&*runtime::handler(panic), script("7"), PATIENCE).await;
    let expected = Failure::new(FailureKind::Script, "the handler panicked: number 7");
    assert_eq!(failure(&report), &expected);
}

#[tokio::test]
async fn a_result_without_a_form_in_json_fails() {
    let broken = async |(): (), _: JobContext| {
        Ok::<_, String>(std::collections::BTreeMap::from([((1, 2), 3)]))
    };
    let report = run_with(&*runtime::handler(broken), script("null"), PATIENCE).await;
    assert_eq!(
        failure(&report).message,
        "the result cannot be written as JSON: key must be a string"
    );
}

#[tokio::test]
async fn the_context_tells_of_the_job() {
    let tell = async |(): (), context: JobContext| {
        let input = context.input.as_deref().map(<[u8]>::len);
        Ok::<_, String>((
            context.job_id,
            context.attempt,
            context.caller_id,
            context.context_id,
            input,
        ))
    };
    let mut job = job(&[
        ("script", b"null"),
        ("caller_id", b"alice"),
        ("context_id", b"shop"),
        ("mw_input", b"\xff\x00"),
    ]);
    job.attempt = 3;
    let report = run_with(&*runtime::handler(tell), job, PATIENCE).await;
    assert_eq!(output(&report), r#"["job-1",3,"alice","shop",2]"#);
}

/// A handler that never ends by itself; it says when it has begun, and the sender goes when it is cut off.
fn endless(sender: mpsc::Sender<()>) -> Arc<dyn runtime::Runtime> {
    runtime::handler(move |(): (), _: JobContext| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(()).await;
            std::future::pending::<Result<(), String>>().await
        }
    })
}

#[tokio::test]
async fn a_handler_is_cut_off_at_its_deadline() {
    let (sender, mut began) = mpsc::channel(1);
    let runner = endless(sender);
    let report = run_with(&*runner, script("null"), Duration::from_millis(50)).await;
    assert_eq!(failure(&report), &Failure::timeout());
    drop(runner);
    assert_eq!(within(began.recv()).await, Some(()));
    assert_eq!(within(began.recv()).await, None, "it is gone");
}

#[tokio::test]
async fn a_handler_that_is_stopped_may_put_things_in_order() {
    let (began, wait_for_begin) = oneshot::channel();
    let (tidied, wait_for_tidied) = oneshot::channel();
    let ends = std::sync::Mutex::new(Some((began, tidied)));
    let runner = runtime::handler(move |(): (), context: JobContext| {
        let ends = ends.lock().unwrap().take();
        async move {
            let (began, tidied) = ends.ok_or("called twice")?;
            let _ = began.send(());
            context.stop.cancelled().await;
            let _ = tidied.send("in order");
            Ok::<_, &str>(())
        }
    });
    let (run, stop) = run_of(script("null"), ENDLESS);
    let task = tokio::spawn(async move { runner.run(run).await });
    within(wait_for_begin).await.unwrap();
    stop.stop(StopReason::Lost);
    assert_eq!(within(wait_for_tidied).await, Ok("in order"));
    assert!(within(task).await.unwrap().result.is_err());
}

#[tokio::test]
async fn a_run_that_is_dropped_takes_its_handler_along() {
    let (sender, mut began) = mpsc::channel(1);
    let runner = endless(sender);
    let (run, _stop) = run_of(script("null"), ENDLESS);
    let mut future = runner.run(run);
    tokio::select! {
        _ = &mut future => panic!("it never ends"),
        begun = began.recv() => assert_eq!(begun, Some(())),
    }
    drop(future);
    drop(runner);
    assert_eq!(within(began.recv()).await, None);
}

#[test]
fn ping_is_known_by_its_script() {
    for (text, is_ping) in [
        ("ping", true),
        (" ping\n", true),
        ("Ping", false),
        ("ping()", false),
        ("", false),
    ] {
        let job: Job = script(text);
        assert_eq!(runtime::is_ping(&job), is_ping, "{text:?}");
    }
    assert_eq!(runtime::PONG, "pong");
}

#[test]
fn the_runtimes_are_listed_and_found() {
    let names: Vec<_> = runtime::runtimes().collect();
    assert_eq!(names, ["osis", "python", "exec", "sal", "v"]);
    assert!(
        names
            .into_iter()
            .all(|name| runtime::builtin(name).is_some())
    );
    assert!(runtime::builtin("cobol").is_none() && runtime::builtin("OSIS").is_none());
}
