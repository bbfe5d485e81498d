//! Shutdown and the runs of a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::protocol::bananas::Request;
use meshwork::runtime::JobContext;
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use tokio::sync::mpsc;

use super::support::{BOUND, Ground};
use super::worker::held;

/// Jobs that do not end in time at shutdown return to the head of the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stops_hands_back() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let worker = held(&ground, started, Arc::default()).shutdown_timeout(Duration::ZERO);
    let worker = worker.start().await.unwrap();
    let id = ground.client.enqueue(Request::raw("held", "null")).await;
    let id = id.unwrap();
    starts.recv().await.unwrap();
    assert_eq!(worker.stop().await, 1);
    let waiting: Vec<String> = ground
        .say(&["LRANGE", "bananas:queue:normal", "0", "-1"])
        .await;
    assert_eq!(waiting, [id.as_str()]);
    ground.quiet().await;
    let job = ground.client.get(&id).await.unwrap();
    assert_eq!(
        (job.attempts(), job.word("status").as_str()),
        (0, "pending")
    );
}

/// Another worker begins it only when it has ended here, and until then it is this one's.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_back_has_ended_here() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let (waits, ended) = (
        Arc::new(Mutex::new(waits)),
        Arc::new(AtomicBool::new(false)),
    );
    let over = Arc::clone(&ended);
    // It hears of nothing before it is done.
    let deaf = move |(): (), _: JobContext| {
        let _ = started.send(());
        let _ = tokio::task::block_in_place(|| waits.lock().unwrap().recv());
        over.store(true, Ordering::SeqCst);
        async { Ok::<_, String>("dropped") }
    };
    let first = ground
        .worker()
        .handle("deaf", deaf)
        .shutdown_timeout(Duration::ZERO);
    let first = first.start().await.unwrap();
    first.registered().await;
    let id = ground.client.enqueue(Request::raw("deaf", "null")).await;
    let id = id.unwrap();
    starts.recv().await.unwrap();
    let stopping = tokio::spawn(first.stop());
    eventually("it has left", BOUND, async || {
        let listeners: usize = ground.say(&["ZCARD", "bananas:mw:feeds"]).await;
        (listeners == 0).then_some(())
    })
    .await;
    let order = move |(): (), _: JobContext| {
        let after = ended.load(Ordering::SeqCst);
        async move { Ok::<_, String>(after) }
    };
    let second = ground.worker().handle("deaf", order);
    let second = second.start().await.unwrap();
    for _ in 0..3 {
        let last = lease(&ground, &id).await;
        assert!(last.is_some(), "it is held by nobody");
        eventually("the lease is extended", BOUND, async || {
            (lease(&ground, &id).await != last).then_some(())
        })
        .await;
    }
    go.send(()).unwrap();
    assert_eq!(stopping.await.unwrap(), 1);
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert_eq!(outcome.result.as_deref(), Some("true"), "{outcome:?}");
    second.stop().await;
}

/// Until when a job is somebody's.
async fn lease(ground: &Ground, id: &JobId) -> Option<f64> {
    let words = ["ZSCORE", "bananas:mw:lease", id.as_str()];
    ground.say(&words).await
}

/// It cannot be cut off. Its job is released, and whoever stops the worker goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_holds_its_thread_holds_up_no_stop() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let waits = Arc::new(Mutex::new(waits));
    let holds = move |(): (), _: JobContext| {
        let _ = started.send(());
        let _ = tokio::task::block_in_place(|| waits.lock().unwrap().recv());
        async { Ok::<_, String>("late") }
    };
    let worker = ground
        .worker()
        .handle("holds", holds)
        .shutdown_timeout(Duration::ZERO);
    let worker = worker.start().await.unwrap();
    let id = ground.client.enqueue(Request::raw("holds", "null")).await;
    let id = id.unwrap();
    starts.recv().await.unwrap();
    let stopped = tokio::time::timeout(BOUND, worker.stop()).await;
    let waiting: Vec<String> = ground
        .say(&["LRANGE", "bananas:queue:normal", "0", "-1"])
        .await;
    drop(go);
    assert_eq!(stopped.ok(), Some(1));
    assert_eq!(waiting, [id.as_str()]);
}
