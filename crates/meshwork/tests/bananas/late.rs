//! A worker that is stopped in the midst of a claim, and wakes when another one has run the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::runner::Context;
use meshwork::source::bananas::{Client, Request, Worker, WorkerHandle};
use meshwork_testkit::stalling::Stalling;

use crate::support::{BOUND, Ground, LEASE};

/// A worker over a connection of this client, and how often its handler ran.
async fn counted(client: &Client) -> (WorkerHandle, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let handler = move |value: serde_json::Value, _: Context| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(value) }
    };
    let worker = Worker::new(client).handle("count", handler).lease(LEASE);
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    (worker, runs)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_its_lease_is_not_begun() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let way = Stalling::at("held up", &ground.url()).await.unwrap();
    let there = Client::open(way.url()).await.unwrap();
    let (first, late) = counted(&there).await;
    let run = async |payload: &str| {
        let id = ground.client.submit(Request::raw("count", payload)).await;
        ground.client.wait(&id.unwrap(), BOUND).await.unwrap()
    };
    let held_up = run("\"held up\"");
    let second = async {
        way.stands_still().await;
        counted(&ground.client).await
    };
    let (outcome, (second, in_time)) = tokio::join!(held_up, second);
    assert!(outcome.succeeded, "{outcome:?}");
    second.stop().await;
    way.goes_on();
    let outcome = run("\"the next\"").await;
    assert!(outcome.succeeded, "{outcome:?}");
    let runs = [late, in_time].map(|runs| runs.load(Ordering::SeqCst));
    assert_eq!(runs, [1, 1]);
    first.stop().await;
}
