//! Workers and a server that goes away: it dies and loads for a while, or another one takes its place. They
//! carry on by themselves soon after it is back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::worker_support::{Gate, Scripted, osis};
use meshwork::{Client, JobRequest, Target, TlsFiles, Worker};
use meshwork_broker::Broker;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealSentinels, RealServer};
use meshwork_test_servers::stalling::Stalling;

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time until workers work again after the server's return: 1 to 2 s, and time for a busy machine.
const SOON: Duration = Duration::from_secs(15);
/// Keys that a server has to load, and how long it takes over each, in microseconds: some seconds in all.
const KEYS: usize = 6000;
const PER_KEY: &str = "500";

async fn client(url: &str, namespace: &str) -> Client {
    let target = Target::parse(url, TlsFiles::default()).unwrap();
    let keys = JobKeys::new(namespace.parse().unwrap());
    Client::new(Broker::connect(&target, keys).await.unwrap())
}

/// A job as another client writes it, straight to the server that has the data.
fn push(server: &RealServer, namespace: &str, id: &str) {
    let key = format!("{namespace}:job:{id}");
    let queue = format!("{namespace}:q:work:type:osis");
    let fields = ["status", "dispatched", "script_type", "osis", "script", id];
    server
        .say::<()>(&[&["HSET", &key], &fields[..]].concat())
        .unwrap();
    server.say::<()>(&["LPUSH", &queue, id]).unwrap();
}

fn ended(server: &RealServer, namespace: &str, id: &str) -> Option<()> {
    let key = format!("{namespace}:job:{id}");
    let status: String = server.say(&["HGET", &key, "status"]).ok()?;
    (status == "finished").then_some(())
}

/// A job that ran through the outage is reported, and a new one run, within [`SOON`] of `back`. The server is
/// Read without the client, whose own connection may be broken.
async fn carries_on(back: Instant, server: &RealServer, namespace: &str, gate: &Gate) {
    push(server, namespace, "after");
    gate.open();
    for id in ["before", "after"] {
        eventually(&format!("{id} ends"), PATIENCE, async || {
            ended(server, namespace, id)
        })
        .await;
    }
    let took = back.elapsed();
    assert!(took < SOON, "{took:?} after the server was back");
}

/// A worker that is in the midst of the job `before`.
async fn busy(client: &Client, gate: &Gate) -> meshwork::WorkerHandle {
    let runner: Arc<Scripted> = Scripted::gated(gate);
    let worker = Worker::new(client)
        .runtime(osis(), runner)
        .start()
        .await
        .unwrap();
    let job = JobRequest::new(osis(), "1").id("before".parse().unwrap());
    client.enqueue(job).await.unwrap();
    gate.wait_for(1).await;
    worker
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_and_loads_for_a_while() {
    let options = RealServer::redis().append_only();
    let Some(mut server) = options.args(&["--key-load-delay", PER_KEY]).start() else {
        return;
    };
    let fill = format!("for i = 1, {KEYS} do redis.call('SET', 'filler:' .. i, i) end");
    server.say::<()>(&["EVAL", &fill, "0"]).unwrap();
    let (client, gate) = (client(&server.url(), "hero").await, Gate::new());
    let worker = busy(&client, &gate).await;
    server.kill9();
    let raw = redis::Client::open(server.url()).unwrap();
    let server = tokio::task::spawn_blocking(move || {
        server.start_again();
        server
    });
    eventually("it loads", PATIENCE, async || {
        let mut connection = raw.get_connection().ok()?;
        let said = redis::cmd("GET")
            .arg("filler:1")
            .query::<String>(&mut connection);
        (said.err()?.code()? == "LOADING").then_some(())
    })
    .await;
    // Other readers must not conclude that the job does not exist.
    match client.broker().inspect(&"before".parse().unwrap()).await {
        Ok(job) => assert!(job.is_some()),
        Err(error) => assert!(error.is_temporary(), "{error}"),
    }
    let server = server.await.unwrap();
    carries_on(Instant::now(), &server, "hero", &gate).await;
    worker.stop().await;
}

/// Waiting jobs are run and running ones finished on a server that takes nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_memory_has_run_out() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let (client, gate) = (client(&server.url(), "hero").await, Gate::new());
    let worker = busy(&client, &gate).await;
    push(&server, "hero", "waiting");
    server
        .say::<()>(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    gate.open();
    for id in ["before", "waiting"] {
        eventually(&format!("{id} ends"), PATIENCE, async || {
            ended(&server, "hero", id)
        })
        .await;
    }
    server
        .say::<()>(&["CONFIG", "SET", "maxmemory", "0"])
        .unwrap();
    carries_on(Instant::now(), &server, "hero", &gate).await;
    worker.stop().await;
}

async fn fails_over(end: impl FnOnce(&mut RealServer)) {
    let Some(mut sentinels) = RealSentinels::start(RealServer::redis(), None).await else {
        return;
    };
    let url = sentinels.url("?wait_replicas=1&wait_timeout_ms=10000");
    let (client, gate) = (client(&url, "hero").await, Gate::new());
    let worker = busy(&client, &gate).await;
    // The claim is on the replica too once this is confirmed.
    let confirmed = JobRequest::new(osis(), "1");
    client.enqueue(confirmed).await.unwrap();
    end(sentinels.server_mut(0));
    let replica = &sentinels.servers()[1];
    eventually("the replica is promoted", PATIENCE, async || {
        (replica.info("role")? == "master").then_some(())
    })
    .await;
    carries_on(Instant::now(), replica, "hero", &gate).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_dies_and_its_replica() {
    fails_over(RealServer::kill9).await;
}

/// No connection closes, and nothing is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_hangs_and_its_replica() {
    fails_over(|master| master.pause()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_to_another_node() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let namespace = "{hero}";
    let (client, gate) = (client(&cluster.url(), namespace).await, Gate::new());
    let worker = busy(&client, &gate).await;
    let (from, slot) = cluster.owner(namespace);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to).unwrap();
    cluster.move_keys(slot, from, to).unwrap();
    cluster.end_move(slot, from, to).unwrap();
    carries_on(Instant::now(), &cluster.nodes()[to], namespace, &gate).await;
    let id = "before".parse().unwrap();
    let job = client.broker().inspect(&id).await.unwrap();
    let job = job.unwrap();
    assert_eq!((job.status(), job.attempt), (Some(Status::Finished), 1));
    worker.stop().await;
}

/// As if the worker's process was stopped in the midst of a claim: the job is another worker's by then.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_after_its_lease() {
    const LEASE: Duration = Duration::from_millis(300);
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let way = Stalling::at("held up", &server.url()).await.unwrap();
    let (there, here) = (
        client(way.url(), "hero").await,
        client(&server.url(), "hero").await,
    );
    let (late, in_time) = (Scripted::echo(), Scripted::echo());
    let start = async |client: &Client, runner: &Arc<Scripted>| {
        let runner: Arc<Scripted> = Arc::clone(runner);
        let worker = Worker::new(client).runtime(osis(), runner).lease(LEASE);
        worker.start().await.unwrap()
    };
    let first = start(&there, &late).await;
    let job = JobRequest::new(osis(), "held up").id("before".parse().unwrap());
    here.enqueue(job).await.unwrap();
    way.stands_still().await;
    let second = start(&here, &in_time).await;
    let ends = async |id: &str| {
        let ended = async || ended(&server, "hero", id);
        eventually(&format!("{id} ends"), PATIENCE, ended).await;
    };
    ends("before").await;
    second.stop().await;
    way.goes_on();
    push(&server, "hero", "after");
    ends("after").await;
    assert_eq!((late.runs(), in_time.runs()), (1, 1));
    first.stop().await;
}

/// The server is gone again when such an answer comes, with many jobs: none of them is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn many_that_come_late_hold_up_no_stop() {
    const LEASE: Duration = Duration::from_millis(300);
    /// Each of them would wait for three seconds.
    const JOBS: usize = 40;
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let way = Stalling::at("held up", &server.url()).await.unwrap();
    let (there, here) = (
        client(way.url(), "hero").await,
        client(&server.url(), "hero").await,
    );
    let runner = Scripted::echo();
    let worker = Worker::new(&there).runtime(osis(), Arc::clone(&runner) as _);
    let worker = worker
        .concurrency(JOBS)
        .lease(LEASE)
        .shutdown_timeout(Duration::ZERO);
    let worker = worker.start().await.unwrap();
    let jobs: Vec<_> = (0..JOBS)
        .map(|_| JobRequest::new(osis(), "held up").build().unwrap())
        .collect();
    here.enqueue_built(&jobs).await.unwrap();
    way.stands_still().await;
    let since = Instant::now();
    eventually("the lease is over", PATIENCE, async || {
        (since.elapsed() > LEASE).then_some(())
    })
    .await;
    server.kill9();
    way.goes_on();
    let stopped = tokio::time::timeout(PATIENCE, worker.stop()).await;
    assert_eq!(stopped.expect("it stops"), 0);
    assert_eq!(runner.runs(), 0);
}
