//! Claimed jobs whose lease is over before they start: they go back, whatever they waited for. The leases last an hour,
//! so that no renewal comes in between.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use serde::{Deserialize, Deserializer};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::handler::function::JobContext;
use crate::handler::group::BatchOptions;
use crate::{Client, JobRequest, Worker};
use meshwork_runtime::lease::{Lease, LeaseClock, ReadClock};
use meshwork_runtime::{Run, builtin};

const LEASE: Duration = Duration::from_secs(3600);
const TWO_HOURS: u64 = 7200;
/// Name of the thread of the heartbeat.
const HEARTBEAT: &str = "meshwork-keep";

/// A clock that the test moves.
#[derive(Debug, Default)]
struct Hand {
    nanos: AtomicU64,
    /// The heartbeat has read it, for the renewal with which it begins.
    has_beaten: AtomicBool,
}

impl Hand {
    fn has_beaten(&self) -> bool {
        self.has_beaten.load(Ordering::SeqCst)
    }

    fn forward(&self, seconds: u64) {
        self.nanos
            .fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl ReadClock for Hand {
    fn nanos(&self) -> u64 {
        if std::thread::current().name() == Some(HEARTBEAT) {
            self.has_beaten.store(true, Ordering::SeqCst);
        }
        self.nanos.load(Ordering::SeqCst)
    }
}

fn manual() -> (LeaseClock, Arc<Hand>) {
    let hand = Arc::new(Hand::default());
    (LeaseClock::Custom(Arc::clone(&hand) as _), hand)
}
const PATIENCE: Duration = Duration::from_secs(30);

async fn enqueue(client: &Client, name: &str, payload: &str) -> JobId {
    let job = JobRequest::new(name.parse().unwrap(), format!("\"{payload}\""));
    client.enqueue(job.timeout(LEASE * 9)).await.unwrap()
}

async fn becomes(client: &Client, id: &JobId, status: Status) {
    eventually("the job has its status", PATIENCE, async || {
        let job = client.status(id).await.unwrap();
        (job.status() == Some(status)).then_some(())
    })
    .await;
}

/// Waits for the first heartbeat: it renews the leases of jobs that are claimed before it.
async fn begun(hand: &Hand) {
    eventually("the heartbeat begins", PATIENCE, async || {
        hand.has_beaten().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_job_that_waits_to_run_alone_does_not_start_after_its_lease() {
    let (clock, hand) = manual();
    let client = Client::in_memory();
    let queue = client
        .broker()
        .keys()
        .work_queue_type(&"alone".parse().unwrap());
    let go = Arc::new(Notify::new());
    let (goes, starts) = (Arc::clone(&go), Arc::new(Mutex::new(0)));
    let started = Arc::clone(&starts);
    let first = move |_: String, _: JobContext| {
        let go = Arc::clone(&goes);
        async move {
            go.notified().await;
            Ok::<_, String>(())
        }
    };
    let alone = move |_: String, _: JobContext| {
        *started.lock().unwrap() += 1;
        std::future::ready(Ok::<_, String>(()))
    };
    let worker = Worker::new(&client)
        .lease(LEASE)
        .lease_clock(clock)
        .handle("first", first)
        .handle("alone", alone);
    let worker = worker.start().await.unwrap();
    begun(&hand).await;
    let runs = enqueue(&client, "first", "").await;
    becomes(&client, &runs, Status::Started).await;
    let waits = JobRequest::new("alone".parse().unwrap(), "\"\"").concurrent(false);
    let waits = client.enqueue(waits).await.unwrap();
    becomes(&client, &waits, Status::Started).await;
    client.pause(&queue).await.unwrap();
    hand.forward(TWO_HOURS);
    go.notify_one();
    becomes(&client, &waits, Status::Dispatched).await;
    assert_eq!(*starts.lock().unwrap(), 0);
    client.resume(&queue).await.unwrap();
    let ended = client.result(&waits, PATIENCE).await.unwrap();
    assert_eq!(
        (ended.attempt, ended.lost, *starts.lock().unwrap()),
        (1, 0, 1)
    );
    worker.stop().await;
}

/// Number of payloads that were read. Each joins its group in the same step.
static READ: AtomicUsize = AtomicUsize::new(0);

/// A payload whose reading is counted.
struct Payload(String);

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        READ.fetch_add(1, Ordering::SeqCst);
        String::deserialize(deserializer).map(Self)
    }
}

#[tokio::test]
async fn a_group_leaves_out_jobs_whose_lease_is_over() {
    let (clock, hand) = manual();
    let client = Client::in_memory();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = Arc::clone(&calls);
    let group = move |jobs: Vec<(Payload, JobContext)>| {
        let jobs: Vec<_> = jobs.into_iter().map(|(payload, _)| payload.0).collect();
        let results = jobs.iter().map(|_| Ok::<_, String>(())).collect();
        called.lock().unwrap().push(jobs);
        std::future::ready::<Vec<_>>(results)
    };
    let pairs = BatchOptions::up_to(2).linger(LEASE);
    let worker = Worker::new(&client)
        .lease(LEASE)
        .lease_clock(clock)
        .handle_batch("pairs", pairs, group);
    let worker = worker.start().await.unwrap();
    begun(&hand).await;
    let old = enqueue(&client, "pairs", "old").await;
    eventually("the job waits for another one", PATIENCE, async || {
        (READ.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    hand.forward(TWO_HOURS);
    let new = enqueue(&client, "pairs", "new").await;
    client.result(&new, PATIENCE).await.unwrap();
    assert_eq!(*calls.lock().unwrap(), [["new"]]);
    enqueue(&client, "pairs", "newer").await;
    let ended = client.result(&old, PATIENCE).await.unwrap();
    assert_eq!((ended.attempt, ended.lost), (1, 0));
    worker.stop().await;
}

#[tokio::test]
async fn no_process_starts_after_the_lease() {
    let (clock, hand) = manual();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    let run = |lease: &Lease| {
        let script = format!("#!/bin/sh\ntouch {}", file.display());
        let job = Job::from_fields("job-1", [("script".to_owned(), script.into_bytes())]);
        let mut run = Run::new(Arc::new(job), Instant::now() + PATIENCE);
        run.lease = lease.clone();
        async move { builtin("exec").unwrap().run(run).await }
    };
    let lease = Lease::until(clock.now() + LEASE, &clock);
    hand.forward(TWO_HOURS);
    let failure = run(&lease).await.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotStarted);
    assert!(lease.has_refused() && !file.exists());
    lease.renewed(clock.now() + LEASE);
    run(&lease).await.result.unwrap();
    assert!(file.exists());
}
