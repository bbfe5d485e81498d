//! Limits of routes across all native workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::protocol::bananas::{Request, RouteLimit, Worker, WorkerHandle};
use meshwork::runtime::JobContext;
use meshwork_model::bananas::ClientVariant;
use meshwork_test_servers::eventually;
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground, LEASE};

/// State of all handlers: each blocks until released.
#[derive(Default)]
struct Runs {
    now: AtomicUsize,
    most: AtomicUsize,
    ended: AtomicUsize,
}

fn gpu() -> meshwork_model::name::RoutingKey {
    "gpu".parse().unwrap()
}

async fn limit(ground: &Ground, most: Option<u64>) {
    let limit = [RouteLimit::Concurrency(most)];
    ground.client.limit_route(&gpu(), &limit).await.unwrap();
}

async fn submit(ground: &Ground, jobs: usize) {
    for _ in 0..jobs {
        let request = Request::raw("hold", "1").route(gpu());
        ground.client.enqueue(request).await.unwrap();
    }
}

/// A worker of the route whose jobs hold on until the gate has room for one more to go.
async fn worker(ground: &Ground, runs: &Arc<Runs>, gate: &Arc<Semaphore>) -> WorkerHandle {
    worker_of("gpu", ground, runs, gate).await
}

async fn worker_of(
    routes: &str,
    ground: &Ground,
    runs: &Arc<Runs>,
    gate: &Arc<Semaphore>,
) -> WorkerHandle {
    let (runs, gate) = (Arc::clone(runs), Arc::clone(gate));
    let hold = move |_: u64, _: JobContext| {
        let (runs, gate) = (Arc::clone(&runs), Arc::clone(&gate));
        async move {
            let now = runs.now.fetch_add(1, Ordering::SeqCst) + 1;
            runs.most.fetch_max(now, Ordering::SeqCst);
            let room = gate.acquire().await.map_err(|error| error.to_string())?;
            room.forget();
            runs.now.fetch_sub(1, Ordering::SeqCst);
            runs.ended.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(())
        }
    };
    let worker = Worker::new(&ground.client).handle("hold", hold);
    let worker = worker.routes(routes.parse().unwrap()).lease(LEASE);
    let worker = worker.concurrency(4).start().await.unwrap();
    worker.registered().await;
    worker
}

async fn running(runs: &Runs, jobs: usize) {
    eventually("jobs run", BOUND, async || {
        (runs.now.load(Ordering::SeqCst) == jobs).then_some(())
    })
    .await;
}

/// Each end lets the next one start, whoever has it; and what was held back starts when the limit is gone.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_of_a_route_run_at_once_in_all_workers() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (runs, gate) = (Arc::new(Runs::default()), Arc::new(Semaphore::new(0)));
    limit(&ground, Some(2)).await;
    let one = worker(&ground, &runs, &gate).await;
    let other = worker(&ground, &runs, &gate).await;
    submit(&ground, 12).await;
    for ended in 1..=6 {
        running(&runs, 2).await;
        gate.add_permits(1);
        eventually("one ends", BOUND, async || {
            (runs.ended.load(Ordering::SeqCst) == ended).then_some(())
        })
        .await;
    }
    running(&runs, 2).await;
    assert_eq!(runs.most.load(Ordering::SeqCst), 2);
    limit(&ground, None).await;
    running(&runs, 6).await;
    gate.add_permits(6);
    ground.quiet().await;
    one.stop().await;
    other.stop().await;
    assert_eq!(runs.ended.load(Ordering::SeqCst), 12);
}

/// Two makes of clients write the route only into the record: a worker that serves the route and the lists without one
/// brings such jobs to the list of the route first.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_holds_for_jobs_on_lists_without_a_route() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (runs, gate) = (Arc::new(Runs::default()), Arc::new(Semaphore::new(0)));
    limit(&ground, Some(1)).await;
    let both = worker_of("gpu,default", &ground, &runs, &gate).await;
    let sdk = ground.client.clone().with_variant(ClientVariant::Python);
    for _ in 0..4 {
        let request = Request::raw("hold", "1").route(gpu());
        sdk.enqueue(request).await.unwrap();
    }
    for ended in 1..=4 {
        running(&runs, 1).await;
        gate.add_permits(1);
        eventually("one ends", BOUND, async || {
            (runs.ended.load(Ordering::SeqCst) == ended).then_some(())
        })
        .await;
    }
    ground.quiet().await;
    both.stop().await;
    assert_eq!(runs.most.load(Ordering::SeqCst), 1);
    let counted: String = ground
        .say(&[
            "HGET",
            "bananas:mw:stats",
            "bananas:route:gpu:queue:normal finished",
        ])
        .await;
    assert_eq!(counted, "4");
}

/// A worker that takes no more leaves the slot to one that waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_another_worker_frees_is_taken() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (runs, gate) = (Arc::new(Runs::default()), Arc::new(Semaphore::new(0)));
    limit(&ground, Some(1)).await;
    let one = worker(&ground, &runs, &gate).await;
    submit(&ground, 1).await;
    running(&runs, 1).await;
    let later = Arc::new(Semaphore::new(0));
    let other = worker(&ground, &runs, &later).await;
    submit(&ground, 1).await;
    let stopping = tokio::spawn(one.stop());
    eventually("one listens no more", BOUND, async || {
        let feeds: usize = ground.say(&["ZCARD", "bananas:mw:feeds"]).await;
        (feeds == 3).then_some(())
    })
    .await;
    gate.add_permits(1);
    assert_eq!(stopping.await.unwrap(), 0);
    running(&runs, 1).await;
    later.add_permits(1);
    ground.quiet().await;
    other.stop().await;
    let most = runs.most.load(Ordering::SeqCst);
    assert_eq!((most, runs.ended.load(Ordering::SeqCst)), (1, 2));
}

/// Jobs that reached a worker while the route was full return to the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_route_holds_up_no_other() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (runs, gate) = (Arc::new(Runs::default()), Arc::new(Semaphore::new(0)));
    limit(&ground, Some(1)).await;
    let holding = worker(&ground, &runs, &gate).await;
    let both = ground.worker().routes("gpu,default".parse().unwrap());
    submit(&ground, 1).await;
    running(&runs, 1).await;
    let both = both.start().await.unwrap();
    both.registered().await;
    let waits = Request::raw("echo", "7").route(gpu());
    let waits = ground.client.enqueue(waits).await.unwrap();
    let passes = ground.client.enqueue(Request::raw("echo", "8")).await;
    let passed = ground.client.wait(&passes.unwrap(), BOUND).await.unwrap();
    assert_eq!(passed.result.as_deref(), Some("8"));
    let waiting: usize = ground
        .say(&["LLEN", "bananas:route:gpu:queue:normal"])
        .await;
    assert_eq!(waiting, 1);
    let stopping = tokio::spawn(holding.stop());
    eventually("one listens no more", BOUND, async || {
        let feeds: usize = ground.say(&["ZCARD", "bananas:mw:feeds"]).await;
        (feeds == both.queues().len()).then_some(())
    })
    .await;
    gate.add_permits(1);
    let waited = ground.client.wait(&waits, BOUND).await.unwrap();
    assert_eq!(waited.result.as_deref(), Some("7"));
    stopping.await.unwrap();
    both.stop().await;
}
