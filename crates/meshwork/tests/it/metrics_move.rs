//! Each metric moves when what it tells of happens. One story, on a server of its own; after each step of it
//! somebody looks until the metrics meant have another value than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::metrics_mesh;
use crate::worker_support::{Gate, Scripted, osis, raw};
use meshwork::metrics::{FIGURES, Format, Kind, Metric, Metrics};
use meshwork::protocol::bananas::{
    Client as BananasClient, Request as BananasRequest, Worker as BananasWorker,
};
use meshwork::runtime::JobContext;
use meshwork::{Client, JobRequest, Monitor, NewSchedule, Worker, WorkerHandle};
use meshwork_broker::bananas::{Claim as BananasClaim, Requeue};
use meshwork_broker::{Claim, PrefetchLists};
use meshwork_model::job::{NewJob, When};
use meshwork_model::name::{JobId, RoutingKey};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use tokio::sync::Notify;

const PATIENCE: Duration = Duration::from_secs(60);
/// Jobs at once.
const SLOTS: usize = 3;
/// Lease: far longer than a busy machine delays a thread. A lease lost by accident moves later metrics.
const LEASE: Duration = Duration::from_secs(3);
/// More keys than one slice of the search for queues looks at.
const KEYS: &str = "25000";

/// Metrics that are constant in a process, each with a lower bound.
const CONSTANT: [(&str, f64); 3] = [
    ("process_max_fds", 10.0),
    ("process_start_time_seconds", 1_600_000_000.0),
    ("meshwork_build", 0.0),
];

/// Reader of the metrics, and the values read.
struct Watcher {
    client: Client,
    bananas: BananasClient,
    monitor: Option<Monitor>,
    last: BTreeMap<String, f64>,
    moved: BTreeSet<&'static str>,
}

impl Watcher {
    /// Looks, with nothing kept from before.
    async fn look(&mut self) {
        let mut metrics = Metrics::new(&self.client).bananas(&self.bananas);
        metrics = metrics.whole();
        if let Some(monitor) = &self.monitor {
            metrics = metrics.worker(monitor.clone());
        }
        self.see(&metrics.text(Format::OpenMetrics).await);
    }

    fn see(&mut self, page: &str) {
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            let before = self.last.insert(series.to_owned(), value).unwrap_or(0.0);
            if before != value {
                self.moved.insert(figure(series).name);
            }
        }
    }

    /// Forgets what has moved, then looks until all of these have.
    async fn until(&mut self, names: &[&'static str]) {
        for name in names {
            self.moved.remove(name);
        }
        let mut left = names.to_vec();
        let looks = eventually("metrics move", PATIENCE, async || {
            self.look().await;
            left.retain(|name| !self.moved.contains(name));
            left.is_empty().then_some(())
        });
        if tokio::time::timeout(PATIENCE / 2, looks).await.is_err() {
            panic!("{left:?} do not move: {:#?}", self.last);
        }
    }
}

fn figure(series: &str) -> &'static Metric {
    let name = series.split('{').next().unwrap();
    let is_it = |figure: &&Metric| match figure.kind {
        Kind::Histogram => name.starts_with(&format!("{}_", figure.name)),
        _ => name == figure.sample(),
    };
    FIGURES
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{series}"))
}

async fn worker(client: &Client, runner: &Arc<Scripted>) -> WorkerHandle {
    let worker = Worker::new(client).runtime(osis(), Arc::clone(runner) as _);
    let worker = worker.concurrency(SLOTS).lease(LEASE);
    let worker = worker
        .shutdown_timeout(Duration::ZERO)
        .start()
        .await
        .unwrap();
    worker.registered().await;
    worker
}

fn request(script: &str) -> JobRequest {
    JobRequest::new(osis(), script)
}

async fn submit(client: &Client, id: &str, change: impl FnOnce(&mut NewJob)) {
    let mut job = request("1").id(id.parse().unwrap()).build().unwrap();
    change(&mut job);
    client.enqueue_built(&[job]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_metric_moves() {
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let mut watcher = Watcher {
        client: client.clone(),
        bananas: BananasClient::open(&server.url()).await.unwrap(),
        monitor: None,
        last: BTreeMap::new(),
        moved: BTreeSet::new(),
    };
    let mut seen = BTreeSet::new();
    nobody_works(&client, &mut watcher, &mut seen).await;
    schedules_come(&client, &mut watcher, &mut seen).await;
    somebody_works(&client, &mut watcher, &mut seen).await;
    keys_take_turns(&client, &mut watcher, &mut seen).await;
    stale_jobs_are_counted(&client, &mut watcher, &mut seen).await;
    metrics_mesh::a_node_is_known(&client).await;
    step(&mut watcher, &mut seen, &metrics_mesh::NAMES).await;
    metrics_mesh::check(&watcher.last);
    jobs_of_bananas_run(&mut watcher, &mut seen).await;
    jobs_of_bananas_do_not_run(&mut watcher, &mut seen).await;
    workers_go_away(&client, &mut watcher, &mut seen).await;
    the_search_goes_on(&client, &mut watcher, &mut seen).await;
    memory_runs_out(&client, &mut watcher, &mut seen).await;
    let gone = worker(&client, &Scripted::obedient()).await;
    watcher.monitor = Some(gone.monitor());
    watcher.look().await;
    server.kill9();
    let names = [
        "meshwork_store_up",
        "meshwork_worker_ready",
        "meshwork_worker_connection_errors",
    ];
    step(&mut watcher, &mut seen, &names).await;
    for (name, over) in CONSTANT {
        let is_it = |series: &&String| figure(series).name == name;
        let series = watcher.last.keys().find(is_it).unwrap();
        assert!(watcher.last[series] > over, "{series}");
        seen.insert(name);
    }
    let still: Vec<_> = FIGURES
        .iter()
        .map(|it| it.name)
        .filter(|name| !seen.contains(name))
        .collect();
    assert!(still.is_empty(), "nothing in the story moves {still:?}");
}

async fn step(watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>, names: &[&'static str]) {
    watcher.until(names).await;
    seen.extend(names);
}

async fn nobody_works(client: &Client, watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>) {
    watcher.look().await;
    client.enqueue(request("1")).await.unwrap();
    let names = [
        "meshwork_jobs_created",
        "meshwork_queue_jobs",
        "meshwork_queue_oldest_job_age_seconds",
        "meshwork_store_read_seconds",
        "meshwork_store_memory_bytes",
        "meshwork_store_scripts",
        "meshwork_store_script_seconds",
        "meshwork_store_script_latency_seconds",
        "process_cpu_seconds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
    ];
    // Memory that is allocated and used.
    let memory = vec![1_u8; 64 << 20];
    step(watcher, seen, &names).await;
    drop(std::hint::black_box(memory));
    let files: Vec<_> = (0..3).map(|_| an_open_file()).collect();
    step(watcher, seen, &["process_open_fds"]).await;
    drop(files);
    submit(client, "soon", |job| job.when = Some(When::In(1))).await;
    let names = ["meshwork_delayed_jobs", "meshwork_overdue_job_age_seconds"];
    step(watcher, seen, &names).await;
}

/// Of a type that nobody works for.
async fn schedules_come(client: &Client, watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>) {
    let job = JobRequest::new("reports".parse().unwrap(), "1");
    let request = NewSchedule::every(Duration::from_secs(1), job).unwrap();
    let schedule = client.schedule("pulse").unwrap();
    schedule.add(request).await.unwrap();
    let names = [
        "meshwork_schedules",
        "meshwork_schedule_next_timestamp_seconds",
        "meshwork_overdue_schedule_age_seconds",
    ];
    step(watcher, seen, &names).await;
    assert_eq!(client.broker().fire_schedules().await.unwrap().stored, 1);
    let names = [
        "meshwork_schedule_slots",
        "meshwork_schedule_lateness_seconds",
    ];
    step(watcher, seen, &names).await;
    schedule.remove().await.unwrap();
}

fn an_open_file() -> std::fs::File {
    std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap()
}

async fn somebody_works(client: &Client, watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>) {
    let gate = Gate::new();
    let held = Scripted::gated_using(&gate);
    let holding = worker(client, &held).await;
    watcher.monitor = Some(holding.monitor());
    // Those that wait already, the delayed one among them: it must not take the slot of the next one.
    gate.wait_for(2).await;
    client
        .enqueue(request("1").id("held".parse().unwrap()))
        .await
        .unwrap();
    let names = [
        "meshwork_jobs_started",
        "meshwork_queue_last_claim_age_seconds",
        "meshwork_queue_listeners",
        "meshwork_workers",
        "meshwork_slots",
        "meshwork_slots_busy",
        "meshwork_running_jobs",
        "meshwork_claim_latency_seconds",
        "meshwork_worker_slots",
        "meshwork_worker_slots_busy",
        "meshwork_worker_last_claim_age_seconds",
        "meshwork_worker_last_contact_age_seconds",
    ];
    step(watcher, seen, &names).await;
    gate.wait_for(3).await;
    // It runs here, and somebody takes it away.
    client.force_cancel(&id("held")).await.unwrap();
    let names = ["meshwork_jobs_cancelled", "meshwork_worker_leases_lost"];
    step(watcher, seen, &names).await;
    gate.open();
    let names = [
        "meshwork_jobs_finished",
        "meshwork_jobs_run_seconds",
        "meshwork_run_seconds",
        "meshwork_run_cpu_seconds",
        "meshwork_run_written_bytes",
        "meshwork_run_peak_memory_bytes",
        "meshwork_ended_jobs",
    ];
    step(watcher, seen, &names).await;
    holding.stop().await;
    let failing = worker(client, &Scripted::obedient()).await;
    client
        .enqueue(
            request("fail")
                .id(id("bad"))
                .retries(1)
                .backoff(Duration::ZERO),
        )
        .await
        .unwrap();
    let names = [
        "meshwork_jobs_retried",
        "meshwork_jobs_failed",
        "meshwork_jobs_errors",
        "meshwork_jobs_dead",
        "meshwork_dead_letters",
    ];
    step(watcher, seen, &names).await;
    client.retry(&id("bad")).await.unwrap();
    step(watcher, seen, &["meshwork_jobs_requeued"]).await;
    failing.stop().await;
}

async fn stale_jobs_are_counted(
    client: &Client,
    watcher: &mut Watcher,
    seen: &mut BTreeSet<&'static str>,
) {
    let job = [
        "HSET",
        "hero:job:lost",
        "status",
        "dispatched",
        "script",
        "1",
    ];
    raw::<()>(client, &[&job[..], &["script_type", "python"]].concat()).await;
    // The next walk begins at once.
    raw::<()>(client, &["DEL", "hero:q:walk"]).await;
    // Nothing foreign is pushed before a second walk, a minute later.
    let looks = Worker::new(client).runtime(osis(), Scripted::obedient() as _);
    let looks = looks.rescue_orphans_after(Duration::from_millis(200));
    let looks = looks
        .shutdown_timeout(Duration::ZERO)
        .start()
        .await
        .unwrap();
    step(watcher, seen, &["meshwork_stale_jobs"]).await;
    raw::<()>(client, &["DEL", "hero:job:lost"]).await;
    looks.stop().await;
}

async fn keys_take_turns(
    client: &Client,
    watcher: &mut Watcher,
    seen: &mut BTreeSet<&'static str>,
) {
    let queue = client
        .broker()
        .keys()
        .work_queue_type(&"fair".parse().unwrap());
    let field = format!("queue:{queue}");
    raw::<()>(
        client,
        &["HSET", &client.broker().keys().config(), &field, "fair=1"],
    )
    .await;
    for name in ["f1", "f2", "f3"] {
        submit(client, name, |job| {
            job.route.script_type = "fair".parse().unwrap();
            job.key = Some("tenant".to_owned());
        })
        .await;
    }
    step(watcher, seen, &["meshwork_queue_set_aside_jobs"]).await;
}

async fn jobs_of_bananas_run(watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>) {
    let client = watcher.bananas.clone();
    let later = BananasRequest::raw("hold", "1").at_ms(4_000_000_000_000);
    client.enqueue(later).await.unwrap();
    client
        .enqueue(BananasRequest::raw("hold", "1"))
        .await
        .unwrap();
    let names = [
        "meshwork_bananas_jobs_created",
        "meshwork_bananas_queue_jobs",
        "meshwork_bananas_queue_oldest_job_age_seconds",
        "meshwork_bananas_scheduled_jobs",
    ];
    step(watcher, seen, &names).await;
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let hold = move |_: u64, _: JobContext| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok::<_, String>(())
        }
    };
    let fail = async |_: u64, _: JobContext| Err::<(), _>("boom");
    let worker = BananasWorker::new(&client).handle("hold", hold);
    let worker = worker.handle("fail", fail).lease(LEASE);
    let worker = worker.start().await.unwrap();
    let names = [
        "meshwork_bananas_jobs_started",
        "meshwork_bananas_running_jobs",
        "meshwork_bananas_processing_jobs",
    ];
    step(watcher, seen, &names).await;
    gate.notify_one();
    let names = [
        "meshwork_bananas_jobs_finished",
        "meshwork_bananas_jobs_run_seconds",
    ];
    step(watcher, seen, &names).await;
    let failing = BananasRequest::raw("fail", "1").max_retries(2);
    client.enqueue(failing).await.unwrap();
    let names = [
        "meshwork_bananas_jobs_retried",
        "meshwork_bananas_jobs_failed",
        "meshwork_bananas_jobs_dead",
        "meshwork_bananas_dead_letters",
    ];
    step(watcher, seen, &names).await;
    worker.stop().await;
}

async fn jobs_of_bananas_do_not_run(watcher: &mut Watcher, seen: &mut BTreeSet<&'static str>) {
    let client = watcher.bananas.clone();
    let broker = client.broker();
    client
        .enqueue(BananasRequest::raw("none", "1"))
        .await
        .unwrap();
    let lists = broker.keys().lists(&[RoutingKey::default()]);
    let claim = |token| BananasClaim {
        lists: &lists,
        want: 1,
        lease: Duration::from_millis(1),
        worker: "w-1",
        token,
    };
    assert_eq!(broker.claim(claim("t-1")).await.unwrap().jobs.len(), 1);
    eventually("its lease ends", PATIENCE, async || {
        let taken = broker.reclaim().await.unwrap().requeued.len();
        (taken == 1).then_some(())
    })
    .await;
    step(watcher, seen, &["meshwork_bananas_jobs_lost"]).await;
    let taken = broker.claim(claim("t-2")).await.unwrap().jobs;
    assert!(broker.release(&taken[0], Requeue::Next).await.unwrap());
    step(watcher, seen, &["meshwork_bananas_jobs_released"]).await;
}

async fn workers_go_away(
    client: &Client,
    watcher: &mut Watcher,
    seen: &mut BTreeSet<&'static str>,
) {
    submit(client, "lost", |_| {}).await;
    let queue = client.broker().keys().work_queue_type(&osis());
    let claim = Claim {
        queues: &[queue],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: Duration::from_millis(1),
        worker: "w-1",
        token: "t-1",
    };
    assert_eq!(client.broker().claim(claim).await.unwrap().jobs.len(), 1);
    let gate = Gate::new();
    let worker = worker(client, &Scripted::gated(&gate)).await;
    step(watcher, seen, &["meshwork_jobs_lost"]).await;
    gate.wait_for(1).await;
    assert_eq!(worker.stop().await, 1);
    step(watcher, seen, &["meshwork_jobs_released"]).await;
}

/// Among many keys the search for queues takes more than one look.
async fn the_search_goes_on(
    client: &Client,
    watcher: &mut Watcher,
    seen: &mut BTreeSet<&'static str>,
) {
    let fill = "for i = 1, ARGV[1] do redis.call('SET', 'filler:' .. i, i) end";
    raw::<()>(client, &["EVAL", fill, "0", KEYS]).await;
    let metrics = Metrics::new(client);
    watcher.moved.remove("meshwork_store_partial");
    eventually("the search has been all around", PATIENCE, async || {
        let page = metrics.text(Format::OpenMetrics).await;
        watcher.see(&page);
        page.contains("\nmeshwork_store_partial 0\n").then_some(())
    })
    .await;
    assert!(watcher.moved.contains("meshwork_store_partial"));
    seen.insert("meshwork_store_partial");
}

/// Meshwork refuses servers that evict keys, but the policy may change later.
async fn memory_runs_out(
    client: &Client,
    watcher: &mut Watcher,
    seen: &mut BTreeSet<&'static str>,
) {
    let set = async |name: &str, value: &str| {
        raw::<()>(client, &["CONFIG", "SET", name, value]).await;
    };
    set("maxmemory", "1gb").await;
    step(watcher, seen, &["meshwork_store_memory_limit_bytes"]).await;
    set("maxmemory-policy", "allkeys-random").await;
    let before = raw::<u64>(client, &["DBSIZE"]).await;
    // Less than is in use: keys go until the rest fits.
    set("maxmemory", "1").await;
    step(watcher, seen, &["meshwork_store_evicted_keys"]).await;
    set("maxmemory", "0").await;
    set("maxmemory-policy", "noeviction").await;
    assert!(raw::<u64>(client, &["DBSIZE"]).await < before);
}

fn id(text: &str) -> JobId {
    text.parse().unwrap()
}
