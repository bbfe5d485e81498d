//! Queues that are paused or at their limit. Called by the tests of the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use meshwork::{Client, JobRequest};
use meshwork_model::outcome::Report;
use meshwork_model::state::Status;
use tokio::time::Instant;

use super::{PATIENCE, worker};
use crate::worker_support::{Scripted, osis, raw};

const QUEUE: &str = "queue:hero:q:work:type:osis";

async fn set(client: &Client, settings: &str) {
    let _: usize = raw(client, &["HSET", "hero:q:config", QUEUE, settings]).await;
}

pub(crate) async fn a_paused_queue_holds_up_no_other(client: Client) {
    set(&client, "paused=1").await;
    let runner = Scripted::echo();
    let worker = worker(&client, &runner)
        .concurrency(2)
        .runtime("sal".parse().unwrap(), runner.clone() as _)
        .start()
        .await
        .unwrap();
    worker.registered().await;
    let waits = client.enqueue(JobRequest::new(osis(), "x")).await.unwrap();
    let urgent = JobRequest::new(osis(), "x").priority(meshwork_model::route::Priority::High);
    let urgent = client.enqueue(urgent).await.unwrap();
    for n in 0..20 {
        let sal = JobRequest::new("sal".parse().unwrap(), format!("{n}"));
        client.run(sal).await.unwrap();
    }
    assert_eq!(runner.runs(), 20);
    for id in [&waits, &urgent] {
        let job = client.status(id).await.unwrap();
        assert_eq!(job.status(), Some(Status::Dispatched));
    }
    let _: usize = raw(&client, &["HDEL", "hero:q:config", QUEUE]).await;
    for id in [&waits, &urgent] {
        let job = client.result(id, PATIENCE).await.unwrap();
        assert_eq!((job.attempt, job.lost), (1, 0));
    }
    worker.stop().await;
}

/// The next job starts when the one before it has ended, not when it is time to look again.
pub(crate) async fn the_limit_of_a_queue_makes_it_no_slower_than_its_jobs(client: Client) {
    const JOBS: usize = 300;
    set(&client, "concurrency=1").await;
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = Arc::clone(&most);
    let runner = Scripted::new(move |_| {
        highest.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        active.fetch_sub(1, Ordering::SeqCst);
        Report::done("")
    });
    let jobs: Vec<_> = (0..JOBS)
        .map(|_| JobRequest::new(osis(), "x").build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    let began = Instant::now();
    let worker = worker(&client, &runner).start().await.unwrap();
    for job in &jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    let took = began.elapsed();
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // By looking again after 200 ms each time it would be 60 s; it takes two, where nothing else runs.
    assert!(took < Duration::from_secs(40), "{took:?}");
    worker.stop().await;
}
