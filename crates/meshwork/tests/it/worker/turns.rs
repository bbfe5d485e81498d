//! Exclusive jobs and cancelled jobs: called by the tests of the worker.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use meshwork::{Client, Error, JobRequest, Worker};
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use tokio::time::Instant;

use super::{PATIENCE, worker};
use crate::worker_support::{Gate, Scripted, osis};

fn alone(script: &str) -> JobRequest {
    JobRequest::new(osis(), script).concurrent(false)
}

pub(crate) async fn a_job_that_runs_alone_has_nothing_beside_it(client: Client) {
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let runner = {
        let (active, most) = (Arc::clone(&active), Arc::clone(&most));
        Scripted::new(move |run| {
            let before = active.fetch_add(1, Ordering::SeqCst);
            most.fetch_max(before + 1, Ordering::SeqCst);
            let mut beside = before;
            for _ in 0..100 {
                std::thread::yield_now();
                beside = beside.max(active.load(Ordering::SeqCst) - 1);
            }
            active.fetch_sub(1, Ordering::SeqCst);
            if run.job.concurrent || beside == 0 {
                Report::done("")
            } else {
                Report::failed(Failure::new(
                    FailureKind::Permanent,
                    format!("beside {beside}"),
                ))
            }
        })
    };
    let jobs: Vec<_> = (0..120)
        .map(|n| {
            let request = JobRequest::new(osis(), "x").concurrent(n % 10 < 7);
            request.build().unwrap()
        })
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    let worker = worker(&client, &runner)
        .concurrency(8)
        .start()
        .await
        .unwrap();
    for job in &jobs {
        let job = client.result(&job.id, PATIENCE).await.unwrap();
        assert_eq!((job.attempt, job.lost), (1, 0));
    }
    assert!(
        most.load(Ordering::SeqCst) > 1,
        "the others ran beside each other"
    );
    worker.stop().await;
}

pub(crate) async fn the_timeout_of_a_job_that_runs_alone_begins_with_its_turn(client: Client) {
    let gate = Gate::new();
    let opened = Arc::new(OnceLock::<Instant>::new());
    let runner = Scripted::gated(&gate);
    let second = {
        let opened = Arc::clone(&opened);
        Scripted::new(move |run| {
            let turn = *opened.get().expect("the first has ended");
            let whole = run.deadline >= turn + Duration::from_secs(run.job.timeout);
            Report::done(whole.to_string())
        })
    };
    let worker = worker(&client, &runner)
        .runtime("python".parse().unwrap(), second as _)
        .start()
        .await
        .unwrap();
    client
        .enqueue(JobRequest::new(osis(), "first"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    let request = JobRequest::new("python".parse().unwrap(), "x").concurrent(false);
    let id = client.enqueue(request).await.unwrap();
    eventually("it is claimed", PATIENCE, async || {
        (worker.running() == 2).then_some(())
    })
    .await;
    opened.set(Instant::now()).unwrap();
    gate.open();
    let job = client.result(&id, PATIENCE).await.unwrap();
    assert_eq!(job.output.as_deref(), Some(b"true".as_slice()));
    worker.stop().await;
}

pub(crate) async fn of_several_that_run_alone_others_may_have_the_rest(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let jobs = ["one", "two"].map(|script| alone(script).build().unwrap());
    client.enqueue_built(&jobs).await.unwrap();
    let first = worker(&client, &runner)
        .concurrency(4)
        .start()
        .await
        .unwrap();
    gate.wait_for(1).await;
    let second = worker(&client, &runner)
        .concurrency(4)
        .start()
        .await
        .unwrap();
    gate.wait_for(2).await;
    assert_eq!((first.running(), second.running()), (1, 1));
    gate.open();
    for job in &jobs {
        let job = client.result(&job.id, PATIENCE).await.unwrap();
        assert_eq!((job.attempt, job.lost), (1, 0));
    }
    first.stop().await;
    second.stop().await;
}

pub(crate) async fn a_run_that_is_asked_to_stop_says_so(client: Client) {
    let worker = Worker::new(&client).script_type(&osis()).unwrap();
    let worker = worker.start().await.unwrap();
    let request = JobRequest::new(osis(), "print(\"begun\"); loop {}").retries(3);
    let id = client.enqueue(request).await.unwrap();
    assert!(!worker.stop_job(&"another".parse().unwrap()));
    eventually("it runs", PATIENCE, async || {
        worker.stop_job(&id).then_some(())
    })
    .await;
    let failed = client.result(&id, PATIENCE).await.unwrap_err();
    assert!(matches!(failed, Error::Failed { message, .. } if message == "stopped_by_request"));
    let job = client.status(&id).await.unwrap();
    assert_eq!((job.status(), job.attempt), (Some(Status::Error), 1));
    worker.stop().await;
}

pub(crate) async fn a_job_that_waits_for_its_turn_can_be_stopped(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let worker = worker(&client, &runner).start().await.unwrap();
    let first = client
        .enqueue(JobRequest::new(osis(), "first"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    let waits = client.enqueue(alone("second")).await.unwrap();
    eventually("it is held", PATIENCE, async || {
        worker.stop_job(&waits).then_some(())
    })
    .await;
    let failed = client.result(&waits, PATIENCE).await.unwrap_err();
    assert!(matches!(failed, Error::Failed { message, .. } if message == "stopped_by_request"));
    assert_eq!(runner.runs(), 1);
    // It holds nobody up any more.
    let third = client
        .enqueue(JobRequest::new(osis(), "third"))
        .await
        .unwrap();
    gate.wait_for(2).await;
    gate.open();
    client.result(&first, PATIENCE).await.unwrap();
    client.result(&third, PATIENCE).await.unwrap();
    worker.stop().await;
}
