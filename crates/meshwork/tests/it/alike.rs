//! Workers of all protocols have one heartbeat interval and one cut-off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use meshwork::protocol::{bananas, nooble};
use meshwork::runtime::JobContext;
use meshwork::{Client, JobRequest, Worker, WorkerHandle};
use meshwork_broker::Broker;
use meshwork_broker::bananas::Bananas;
use meshwork_broker::conn::Conn;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Timeout of each step, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_millis(1_500);
/// Renewals that are looked at: the shortest interval among them is that of a worker which was not held up.
const RENEWALS: usize = 4;

/// A worker that runs a job which ends by nothing but a cut-off.
struct Held {
    protocol: &'static str,
    conn: Conn,
    worker: WorkerHandle,
    /// The sorted set that has the end of the job's lease, or of the registration which stands for it.
    leases: String,
}

/// Begins, and never ends.
async fn hang(began: Arc<Semaphore>) -> Result<(), String> {
    began.add_permits(1);
    std::future::pending().await
}

/// One of each protocol, each on a store of its own, once its job runs.
async fn all() -> [Held; 3] {
    let began = Arc::new(Semaphore::new(0));
    let conn = || Conn::embedded(&meshwork_embedded::Handle::in_memory());
    let (zero, one) = (Duration::ZERO, &began);
    let held = |protocol, conn: &Conn, worker, leases: String| Held {
        protocol,
        conn: conn.clone(),
        worker,
        leases,
    };

    let (store, began) = (conn(), Arc::clone(one));
    let client = Client::new(Broker::new(store.clone(), JobKeys::default()));
    let handler = move |_: u8, _: JobContext| hang(Arc::clone(&began));
    let worker = Worker::new(&client).handle("hang", handler);
    let worker = worker.lease(LEASE).shutdown_timeout(zero).start().await;
    let job = JobRequest::new("hang".parse().unwrap(), "7");
    client.enqueue(job).await.unwrap();
    let hero = held("Hero", &store, worker.unwrap(), "hero:q:lease".to_owned());

    let (store, began) = (conn(), Arc::clone(one));
    let client = bananas::Client::new(Bananas::new(store.clone(), BananasKeys::default()));
    let handler = move |_: u8, _: JobContext| hang(Arc::clone(&began));
    let worker = bananas::Worker::new(&client).handle("hang", handler);
    let worker = worker.lease(LEASE).shutdown_timeout(zero).start().await;
    let job = bananas::Request::raw("hang", "7");
    client.enqueue(job).await.unwrap();
    let leases = "bananas:mw:lease".to_owned();
    let theirs = held("Bananas", &store, worker.unwrap(), leases);

    let (store, began) = (conn(), Arc::clone(one));
    let names = NoobleKeys::new(Namespace::nooble(), None, Dialect::Lists);
    let leases = format!("{}:mw:workers", names.actions("demo", None));
    let client = nooble::Client::new(Nooble::new(store.clone(), names), "demo");
    let handler = move |_: Value, _: nooble::ActionContext| hang(Arc::clone(&began));
    let service = nooble::Service::new(&client).handle("demo.hang", handler);
    let service = service.lease(LEASE).shutdown_timeout(zero).start().await;
    let action = nooble::Request::new("demo.hang", &json!({})).unwrap();
    client.send(action).await.unwrap();
    let service = held("Nooble4", &store, service.unwrap(), leases);

    let all = [hero, theirs, service];
    let begun = tokio::time::timeout(BOUND, one.acquire_many(all.len() as u32)).await;
    begun.expect("all begin").unwrap().forget();
    all
}

impl Held {
    /// The end of the lease, in milliseconds.
    async fn until(&self) -> Option<f64> {
        let mut ask = redis::cmd("ZRANGE");
        ask.arg(&self.leases).arg(0).arg(-1).arg("WITHSCORES");
        let all: Vec<String> = ask.query_async(&mut self.conn.clone()).await.unwrap();
        all.get(1)?.parse().ok()
    }

    /// The shortest time between two renewals.
    async fn interval(&self) -> Duration {
        let (mut last, mut shortest) = (None, f64::MAX);
        // The first one may come soon after the claim.
        let claimed = self.until().await;
        eventually("it is renewed", BOUND, async || {
            last = self.until().await;
            (last != claimed).then_some(())
        })
        .await;
        for _ in 0..RENEWALS {
            let next = eventually("it is renewed", BOUND, async || {
                Some(self.until().await).filter(|next| *next != last)
            });
            let next = next.await;
            if let (Some(last), Some(next)) = (last, next) {
                shortest = shortest.min(next - last);
            }
            last = next;
        }
        Duration::from_secs_f64(shortest / 1_000.0)
    }
}

/// Three renewals in a lease; and a run that ignores signals is aborted after one grace.
#[tokio::test(flavor = "multi_thread")]
async fn workers_renew_and_stop_alike() {
    let all = all().await;
    for held in &all {
        let interval = held.interval().await;
        let (least, most) = (LEASE / 3 - LEASE / 30, LEASE / 3 + LEASE / 6);
        let protocol = held.protocol;
        assert!(
            least <= interval && interval <= most,
            "{protocol}: {interval:?}"
        );
    }
    for held in all {
        let (protocol, began) = (held.protocol, Instant::now());
        assert_eq!(held.worker.stop().await, 1, "{protocol}");
        let took = began.elapsed();
        let (least, most) = (Duration::from_millis(900), Duration::from_secs(4));
        assert!(least <= took && took <= most, "{protocol}: {took:?}");
    }
}
