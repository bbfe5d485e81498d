//! A worker that is stopped in the midst of a claim, and wakes when another one has run the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meshwork::protocol::bananas::{Client, Request, Worker, WorkerHandle};
use meshwork::runtime::JobContext;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use meshwork_test_servers::stalling::Stalling;

use super::support::{BOUND, Ground, LEASE};

/// A worker over a connection of this client, and how often its handler ran.
async fn counted(client: &Client) -> (WorkerHandle, Arc<AtomicUsize>) {
    let (runs, worker) = counting(client);
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    (worker, runs)
}

fn counting(client: &Client) -> (Arc<AtomicUsize>, Worker) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let handler = move |value: serde_json::Value, _: JobContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(value) }
    };
    let worker = Worker::new(client).handle("count", handler).lease(LEASE);
    (runs, worker)
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
        let id = ground.client.enqueue(Request::raw("count", payload)).await;
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

/// The server is gone again when such an answer comes, with many jobs: none of them is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn many_that_come_late_hold_up_no_stop() {
    /// Each of them would wait for three seconds.
    const JOBS: usize = 40;
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let way = Stalling::at("held up", &server.url()).await.unwrap();
    let there = Client::open(way.url()).await.unwrap();
    let here = Client::open(&server.url()).await.unwrap();
    for _ in 0..JOBS {
        let request = Request::raw("count", "\"held up\"");
        here.enqueue(request).await.unwrap();
    }
    let (runs, worker) = counting(&there);
    let worker = worker.concurrency(JOBS).shutdown_timeout(Duration::ZERO);
    let worker = worker.start().await.unwrap();
    way.stands_still().await;
    let since = Instant::now();
    eventually("the lease is over", BOUND, async || {
        (since.elapsed() > LEASE).then_some(())
    })
    .await;
    server.kill9();
    way.goes_on();
    let stopped = tokio::time::timeout(BOUND, worker.stop()).await;
    assert_eq!(stopped.expect("it stops"), 0);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}
