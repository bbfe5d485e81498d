//! Each key of the table, deleted and of another type, one at a time beside running work: jobs, and in a context a flow and
//! messages. Others go on, lists show the rest or name the key, and `doctor` names a key of another type, unless a worker has
//! moved it away. `MESHWORK_ENGINES=all`, as a long check sets it, selects all engines and layouts.

mod beside;

use std::any::Any;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use meshwork::{Client, JobFilter, JobRequest, NewSchedule, Worker};
use meshwork_broker::Broker;
use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::doctor::{Level, examine};
use meshwork_model::job::{OnDuplicate, Until};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, NodeKeys};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::table::{KeyRow, KeyTable};
use meshwork_model::name::{JobId, Namespace};
use meshwork_model::queue::QueueSetting as Set;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer};

use crate::worker_support::{Gate, Scripted, raw};
use beside::Beside;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_go_on_beside_each_damaged_key_of_a_namespace() {
    walk(Engine::Redis, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_flows_and_messages_go_on_beside_each_damaged_key_of_a_context() {
    walk(Engine::Redis, Some(ContextLayout::Prefix)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_go_on_beside_each_damaged_key_of_all_engines_and_layouts() {
    if std::env::var("MESHWORK_ENGINES").as_deref() != Ok("all") {
        eprintln!("skipped: MESHWORK_ENGINES=all selects all engines and layouts");
        return;
    }
    use ContextLayout::{Db, Prefix};
    walk(Engine::Redis, Some(Db)).await;
    for layout in [None, Some(Db), Some(Prefix)] {
        walk(Engine::Embedded, layout).await;
    }
    for layout in [None, Some(Prefix)] {
        walk(Engine::Cluster, layout).await;
    }
}

/// Damages each key of a namespace, or of a context.
async fn walk(engine: Engine, layout: Option<ContextLayout>) {
    let Some(store) = Store::start(engine).await else {
        return;
    };
    let (client, beside) = match layout {
        None => (Client::new(store.node.clone()), None),
        Some(layout) => {
            let (client, beside) = Beside::start(&store.node, layout).await;
            (client, Some(beside))
        }
    };
    let table = client.broker().keys().table();
    let side = Side {
        client,
        store,
        table,
        beside,
        jobs: AtomicU64::new(0),
    };
    side.walk().await;
}

#[derive(Clone, Copy)]
enum Engine {
    Redis,
    Embedded,
    Cluster,
}

/// A store, and its name for `doctor`.
struct Store {
    target: Target,
    namespace: Namespace,
    node: Broker,
    /// Holds the server or the folder.
    _server: Box<dyn Any>,
}

impl Store {
    async fn start(engine: Engine) -> Option<Self> {
        let of_url = |url: &str| Target::parse(url, TlsFiles::default()).unwrap();
        let mut namespace = Namespace::default();
        let (target, server): (_, Box<dyn Any>) = match engine {
            Engine::Redis => {
                let server = RealServer::redis().start()?;
                (of_url(&server.url()), Box::new(server))
            }
            Engine::Embedded => {
                let dir = tempfile::tempdir().unwrap();
                (Target::Directory(dir.path().to_owned()), Box::new(dir))
            }
            Engine::Cluster => {
                let cluster = RealCluster::start(RealServer::redis(), 0).await?;
                namespace = "{hero}".parse().unwrap();
                (of_url(&cluster.url()), Box::new(cluster))
            }
        };
        let node = Broker::connect(&target, JobKeys::new(namespace.clone()));
        Some(Self {
            node: node.await.unwrap(),
            target,
            namespace,
            _server: server,
        })
    }
}

/// A namespace or a context, and the number of jobs so far.
struct Side {
    client: Client,
    store: Store,
    table: KeyTable,
    beside: Option<Beside>,
    jobs: AtomicU64,
}

impl Side {
    fn keys(&self) -> &JobKeys {
        self.client.broker().keys()
    }

    fn request(&self, script_type: &str, script: &str) -> JobRequest {
        let number = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        let id = match self.keys().context() {
            // The flow draws the numbers of another actor.
            Some(context) => format!("{}job:1:{number}", context.prefix()),
            None => format!("j{number}"),
        };
        let request = JobRequest::new(script_type.parse().unwrap(), script);
        request.id(JobId::foreign(id))
    }

    async fn enqueue(&self, request: JobRequest) -> JobId {
        let job = request.build().unwrap();
        let id = job.id.clone();
        self.client.enqueue_built(&[job]).await.unwrap();
        id
    }

    /// Stores values of as many kinds as jobs alone have. Returns the jobs that run through all damages, and those that follow.
    async fn populate(&self, gate: &Gate) -> (Vec<JobId>, Vec<JobId>) {
        let queue = self.keys().work_queue_type(&"gate".parse().unwrap());
        let limits = [Set::KeyConcurrency(Some(1)), Set::Concurrency(Some(9))];
        self.client.update_queue(&queue, &limits).await.unwrap();
        let running = self.enqueue(self.request("gate", "1")).await;
        let keyed = self.enqueue(self.request("gate", "1").key("k")).await;
        gate.wait_for(2).await;
        let behind = self.enqueue(self.request("gate", "1").key("k")).await;
        let after = self.request("osis", "1").depends_on(running.clone());
        let after = self.enqueue(after).await;
        let unique = self.request("osis", "1").delay(HOUR);
        let unique = unique.unique("u", Until::Done, OnDuplicate::Refuse);
        self.enqueue(unique).await;
        self.enqueue(self.request("nobody", "1")).await;
        let fails = self.enqueue(self.request("osis", "fail")).await;
        self.client.wait(&fails, PATIENCE).await.unwrap();
        self.run("osis", Duration::ZERO, "").await;
        let batch = self.client.batch().open().await.unwrap();
        batch.add([self.request("nobody", "1")]).await.unwrap();
        let nightly = NewSchedule::every(HOUR, self.request("osis", "1")).unwrap();
        let schedule = self.client.schedule("nightly").unwrap();
        schedule.add(nightly).await.unwrap();
        (vec![running, keyed], vec![behind, after])
    }

    /// Damages one key of each row.
    async fn walk(&self) {
        let gate = Gate::new();
        let worker = Worker::new(&self.client)
            .runtime("gate".parse().unwrap(), Scripted::gated(&gate))
            .runtime("osis".parse().unwrap(), Scripted::obedient())
            .runtime("v".parse().unwrap(), Scripted::echo())
            .concurrency(6);
        let worker = worker.start().await.unwrap();
        let (running, following) = self.populate(&gate).await;
        let mut spared: Vec<_> = running
            .iter()
            .map(|id| self.keys().job_hash_key(id))
            .collect();
        if let Some(beside) = &self.beside {
            spared.extend(beside.begin().await);
            gate.wait_for(3).await;
            let jobs = self.client.list(0).await.unwrap().jobs;
            let running = jobs.iter().filter(|job| job.status == "started");
            spared.extend(
                running.map(|job| self.keys().job_hash_key(&JobId::foreign(job.id.clone()))),
            );
        }
        for row in self.table.rows() {
            let key = self.key_of(row, &spared).await;
            for is_deleted in [true, false] {
                self.damage(row, &key, is_deleted).await;
            }
        }
        gate.open();
        for id in running.iter().chain(&following) {
            let job = self.client.wait(id, PATIENCE).await.unwrap();
            let ended = (job.status.as_str(), job.attempt);
            assert_eq!(ended, ("finished", 1), "{job:?}");
        }
        if let Some(beside) = &self.beside {
            beside.end().await;
        }
        worker.stop().await;
    }

    /// Returns a key of this row: one that exists and is of nothing that has to go on, else a made-up one.
    async fn key_of(&self, row: &KeyRow, spared: &[String]) -> String {
        let mut keys: Vec<String> = raw(&self.client, &["KEYS", "*"]).await;
        keys.sort();
        let is_spared = |key: &str| {
            spared.iter().any(|it| {
                key.strip_prefix(it.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            })
        };
        let there = keys
            .into_iter()
            .find(|key| self.table.row(key).is_some_and(|of| of == row) && !is_spared(key));
        there.unwrap_or_else(|| match row.key.ends_with(':') {
            true => format!("{}odd", row.key),
            false => row.key.clone(),
        })
    }

    async fn damage(&self, row: &KeyRow, key: &str, is_deleted: bool) {
        let aside = self.keys().damaged("aside");
        let is_there = raw::<i64>(&self.client, &["EXISTS", key]).await == 1;
        if is_there {
            raw::<String>(&self.client, &["RENAME", key, &aside]).await;
        }
        if !is_deleted {
            let command = match row.kinds.contains(&"string") {
                true => "SADD",
                false => "APPEND",
            };
            raw::<i64>(&self.client, &[command, key, "x"]).await;
        }
        for script_type in ["osis", "v"] {
            self.run(script_type, Duration::ZERO, key).await;
        }
        self.run("osis", Duration::from_millis(20), key).await;
        self.lists(key).await;
        if !is_deleted {
            self.is_named_or_moved(key).await;
        }
        raw::<i64>(&self.client, &["DEL", key]).await;
        if is_there {
            raw::<String>(&self.client, &["RENAME", &aside, key]).await;
        }
    }

    /// Runs a job to its end. A refusal has to name the key.
    async fn run(&self, script_type: &str, delay: Duration, key: &str) {
        let what = format!("a job of type {script_type} runs beside {key}");
        let request = self.request(script_type, "1").delay(delay);
        let job = request.build().unwrap();
        eventually(&what, PATIENCE, async || {
            let stored = self.client.enqueue_built(std::slice::from_ref(&job)).await;
            self.named(stored, key).await
        })
        .await;
        let ended = self.client.wait(&job.id, PATIENCE).await;
        let ended = ended.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(ended.status, "finished", "{what}: {ended:?}");
    }

    /// Shows everything. An error has to name the key.
    async fn lists(&self, key: &str) {
        let client = &self.client;
        let filter = JobFilter::default();
        self.named(client.queues().await, key).await;
        self.named(client.list(0).await, key).await;
        self.named(client.find(&filter, 0).await, key).await;
        self.named(client.dead_letters(&filter, None).await, key)
            .await;
        self.named(client.schedules(0).await, key).await;
        self.named(client.batches(9).await, key).await;
        self.named(
            client.broker().stats(&mut Default::default(), true).await,
            key,
        )
        .await;
        if let Some(beside) = &self.beside {
            self.named(beside.flows().await, key).await;
            self.named(beside.messages().await, key).await;
        }
        let jobs = client.list(0).await.map_or(Vec::new(), |page| page.jobs);
        for job in jobs.iter().take(9) {
            self.named(client.why(job).await, key).await;
        }
    }

    /// Returns what is there; none for an error, which has to name the key if that still has another type.
    async fn named<T>(&self, answer: Result<T, impl Display>, key: &str) -> Option<T> {
        if let Err(error) = &answer {
            let text = error.to_string();
            let kind: String = raw(&self.client, &["TYPE", key]).await;
            let is_mended = self.table.expected(key, &kind).is_none();
            assert!(is_mended || text.contains(key), "{key} is not in: {text}");
        }
        answer.ok()
    }

    async fn is_named_or_moved(&self, key: &str) {
        let (target, namespace) = (&self.store.target, &self.store.namespace);
        let what = format!("doctor names {key}, or it is moved away");
        eventually(&what, PATIENCE, async || {
            let found = examine(target, namespace).await.unwrap();
            let is_named = found
                .iter()
                .any(|finding| finding.level == Level::Problem && finding.what.contains(key));
            let kind: String = raw(&self.client, &["TYPE", key]).await;
            (is_named || self.table.expected(key, &kind).is_none()).then_some(())
        })
        .await;
    }
}

/// The page has a line for each row, with its types, and says whether another type is moved away.
#[test]
fn each_key_is_in_the_docs() {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (of_jobs, of_node) = page.split_once("## Keys of the node").unwrap();
    let context = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Db);
    let context = JobKeys::of_context(context).table();
    let node = KeyTable::of_node(NodeKeys::PLAIN);
    for (table, prefix, part) in [
        (JobKeys::default().table(), "hero:q:", of_jobs),
        (context, "mw:", of_jobs),
        (node, "", of_node),
    ] {
        for row in table.rows() {
            let line = |name: &str| {
                let first = format!("| `{name}` |");
                part.lines().find(|line| line.starts_with(&first))
            };
            // Some keys of a context have another name beside that of the namespace.
            if part.contains(&format!("in a context `{}`", row.key)) {
                continue;
            }
            let short = row.key.strip_prefix(prefix).unwrap_or(&row.key);
            let line = line(&row.key).or_else(|| line(short));
            let line = line.unwrap_or_else(|| panic!("{row:?} is not in {PAGE}"));
            let last = line.rsplit(" | ").next().unwrap();
            assert_eq!(last.starts_with("moved"), row.is_found_again, "{line}");
            let is_there = |kind: &&str| line.contains(*kind);
            assert!(row.kinds.iter().all(is_there), "{row:?}: {line}");
        }
    }
}
