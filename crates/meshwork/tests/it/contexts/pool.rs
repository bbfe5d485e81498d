//! Workers of many contexts in one process: they share connections and slots, and hold up one another in nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use meshwork::context::{ContextHandle, Identity, Node, new_key};
use meshwork::{Client, JobRequest, MAX_POOL, Target, TlsFiles, Worker, WorkerHandle, WorkerPool};
use meshwork_broker::conn::Conn;
use meshwork_broker::{Broker, WaitReplicas};
use meshwork_model::access::{Object, Operation};
use meshwork_model::job::Job;
use meshwork_model::keys::context::{ContextId, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::ScriptType;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer, ServerOptions};

use crate::worker_support::{Gate, Scripted, osis, raw};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers that start at once.
const AT_ONCE: usize = 32;

/// Some contexts of one store.
pub(super) struct Site {
    pub(super) server: Option<RealServer>,
    pub(super) cluster: Option<RealCluster>,
    pub(super) node: Node,
    pub(super) me: Identity,
    pub(super) contexts: Vec<ContextHandle>,
    /// For their jobs, over connections of their own.
    pub(super) clients: Vec<Client>,
}

impl Site {
    pub(super) async fn over(
        server: Option<RealServer>,
        many: u32,
        layout: Option<ContextLayout>,
    ) -> Self {
        let conn = match &server {
            None => Conn::embedded(&meshwork_embedded::Handle::in_memory()),
            Some(server) => {
                let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
                Conn::open(&target, &Default::default()).await.unwrap()
            }
        };
        let site = Self::on(conn, JobKeys::default(), many, layout).await;
        Self { server, ..site }
    }

    /// Contexts of a cluster, on all of its nodes.
    pub(super) async fn on_cluster(cluster: RealCluster, many: u32) -> Self {
        Self::on_cluster_with(cluster, many, None).await
    }

    /// The same, with a rule for replicas.
    pub(super) async fn on_cluster_with(
        cluster: RealCluster,
        many: u32,
        rule: Option<WaitReplicas>,
    ) -> Self {
        let target = Target::parse(&cluster.url(), TlsFiles::default()).unwrap();
        let namespace = "{hero}".parse().unwrap();
        let conn = Conn::open(&target, &namespace).await.unwrap();
        let broker = Broker::new(conn, JobKeys::new(namespace));
        let broker = match rule {
            Some(rule) => broker.acknowledge(rule),
            None => broker,
        };
        let site = Self::of(&broker, many, None).await;
        let cluster = Some(cluster);
        Self { cluster, ..site }
    }

    pub(super) async fn on(
        conn: Conn,
        keys: JobKeys,
        many: u32,
        layout: Option<ContextLayout>,
    ) -> Self {
        Self::of(&Broker::new(conn, keys), many, layout).await
    }

    async fn of(broker: &Broker, many: u32, layout: Option<ContextLayout>) -> Self {
        let node = Node::of(broker);
        let key = new_key();
        node.trust(key.public(), None).await.unwrap();
        let me = node.identify(key).await.unwrap();
        let (mut contexts, mut clients) = (Vec::new(), Vec::new());
        for id in 1..=many {
            let context = node.create_context(&me, ContextId::new(id), layout);
            let context = context.await.unwrap();
            let client = context.client(&me, Object::Job, Operation::Create).await;
            clients.push(client.unwrap());
            contexts.push(context);
        }
        Self {
            server: None,
            cluster: None,
            node,
            me,
            contexts,
            clients,
        }
    }

    /// Contexts on each engine: in databases of their own as far as there are any, and in database 0; and on clusters.
    async fn all(many: u32) -> Vec<Self> {
        let mut sites = Vec::new();
        let layouts = [None, Some(ContextLayout::Prefix)];
        for layout in layouts {
            sites.push(Self::over(None, many, layout).await);
            let servers = [RealServer::redis(), RealServer::valkey()];
            for server in servers.map(ServerOptions::start).into_iter().flatten() {
                sites.push(Self::over(Some(server), many, layout).await);
            }
        }
        for server in [RealServer::redis(), RealServer::valkey()] {
            if let Some(cluster) = RealCluster::start(server, 0).await {
                sites.push(Self::on_cluster(cluster, many).await);
            }
        }
        sites
    }

    /// Workers of all contexts in one pool. `runner` makes that of a context.
    pub(super) async fn workers(
        &self,
        slots: usize,
        types: &[ScriptType],
        runner: impl Fn(usize) -> Arc<Scripted>,
    ) -> Vec<WorkerHandle> {
        self.workers_for(slots, types, runner, Duration::from_secs(2))
            .await
    }

    /// The same, with another lease.
    pub(super) async fn workers_for(
        &self,
        slots: usize,
        types: &[ScriptType],
        runner: impl Fn(usize) -> Arc<Scripted>,
        lease: Duration,
    ) -> Vec<WorkerHandle> {
        let pool = WorkerPool::open(&self.node, &self.contexts, slots)
            .await
            .unwrap();
        let started = self.contexts.iter().enumerate().map(async |(at, context)| {
            let context = context.over(pool.node());
            let client = context.client(&self.me, Object::Queue, Operation::Pop);
            let worker = Worker::new(&client.await.unwrap())
                .lease(lease)
                .signing(&context, &self.me)
                .shutdown_timeout(Duration::from_secs(1));
            let runner = runner(at);
            let with =
                |worker: Worker, name: &ScriptType| worker.runtime(name.clone(), runner.clone());
            types
                .iter()
                .fold(worker, with)
                .pool(&pool)
                .start()
                .await
                .unwrap()
        });
        // Their calls share a connection: the last of a thousand would exceed its time on a busy host.
        let (mut started, mut workers): (Vec<_>, Vec<_>) = (started.collect(), Vec::new());
        while !started.is_empty() {
            let part = started.drain(..started.len().min(AT_ONCE));
            workers.extend(join_all(part).await);
        }
        join_all(workers.iter().map(WorkerHandle::registered)).await;
        workers
    }

    /// The number of calls of a command, by all clients.
    fn calls(&self, names: &[&str]) -> u64 {
        let server = self.server.as_ref().expect("a server");
        let stats: String = server.say(&["INFO", "commandstats"]).unwrap();
        let of = |name: &&str| {
            let head = format!("cmdstat_{name}:calls=");
            let line = stats.lines().find_map(|line| line.strip_prefix(&head));
            line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
        };
        names.iter().map(of).sum()
    }

    fn connections(&self) -> usize {
        let server = self.server.as_ref().expect("a server");
        let clients: String = server.say(&["CLIENT", "LIST"]).unwrap();
        clients
            .lines()
            .filter(|line| line.contains("name=meshwork"))
            .count()
    }
}

pub(super) fn new(script: &str) -> JobRequest {
    JobRequest::new(osis(), script)
}

pub(super) async fn stop(workers: Vec<WorkerHandle>) -> usize {
    let stopped = join_all(workers.into_iter().map(WorkerHandle::stop));
    let released = tokio::time::timeout(PATIENCE, stopped).await;
    released.expect("a stop in time").into_iter().sum()
}

#[tokio::test]
async fn jobs_of_all_contexts_run_at_once_later_and_after_others() {
    for site in Site::all(20).await {
        let workers = site.workers(10, &[osis()], |_| Scripted::echo()).await;
        let each = site.clients.iter().enumerate().map(async |(at, client)| {
            let script = at.to_string();
            let now = client.enqueue(new(&script)).await.unwrap();
            let later = new(&script).delay(Duration::from_millis(300));
            let later = client.enqueue(later).await.unwrap();
            let after = client.enqueue(new(&script).depends_on(now)).await.unwrap();
            let stopped = client.enqueue(new("never").delay(PATIENCE)).await.unwrap();
            client.cancel(&stopped).await.unwrap();
            for id in [&later, &after] {
                let job: Job = client.result(id, PATIENCE).await.unwrap();
                assert_eq!(job.output.as_deref(), Some(script.as_bytes()));
            }
            assert!(client.result(&stopped, PATIENCE).await.is_err());
        });
        join_all(each).await;
        assert_eq!(stop(workers).await, 0);
        for (client, context) in site.clients.iter().zip(&site.contexts) {
            let actors = format!("{}mw:actors", context.keys().prefix());
            let registered = raw::<u64>(client, &["ZCARD", &actors]).await;
            assert_eq!(registered, 0, "{}", context.id());
        }
    }
}

/// While all that one context may have is taken by it, for as long as its jobs like, and thousands wait.
#[tokio::test]
async fn a_backlog_holds_up_no_first_job_of_another_context() {
    for site in Site::all(3).await {
        let (gate, order) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let runner = |at: usize| {
            let order = Arc::clone(&order);
            match at {
                0 => Scripted::gated_after(&gate, move |_| order.lock().unwrap().push(at)),
                _ => Scripted::new(move |run| {
                    order.lock().unwrap().push(at);
                    meshwork_model::outcome::Report::done(run.job.script.clone())
                }),
            }
        };
        let workers = site.workers(4, &[osis()], runner).await;
        let [busy, first, second] = &site.clients[..] else {
            unreachable!()
        };
        for _ in 0..30 {
            let some = (0..100).map(|_| busy.enqueue(new("long")).into_future());
            assert!(join_all(some).await.iter().all(Result::is_ok));
        }
        gate.wait_for(3).await;
        first.run(new("1")).await.unwrap();
        second.run(new("2")).await.unwrap();
        assert_eq!(*order.lock().unwrap(), [0, 0, 0, 1, 2]);
        gate.open();
        first.run(new("3")).await.unwrap();
        stop(workers).await;
    }
}

/// The figures of docs/contexts.md.
#[tokio::test]
async fn a_hundred_idle_contexts_cost_three_connections_and_hardly_a_script() {
    let servers = [RealServer::redis(), RealServer::valkey()];
    for server in servers
        .map(|it| it.databases(60).start())
        .into_iter()
        .flatten()
    {
        let site = Site::over(Some(server), 100, None).await;
        let types = ["osis", "python", "exec"].map(|name| name.parse().unwrap());
        let before = site.connections();
        let workers = site.workers(10, &types, |_| Scripted::echo()).await;
        assert!(site.connections() <= before + 3);
        site.clients[99].run(new("1")).await.unwrap();
        // Contexts in databases of their own are polled. Each sends at most eight of these per second: five for its queues, one
        // for what is due, and one with each heartbeat.
        let databases = site.contexts.iter();
        let databases = databases.filter(|it| it.keys().layout() == ContextLayout::Db);
        let polled = databases.count() as u64;
        let seconds = async |many: u64| {
            let begun = site.calls(&["exists"]);
            eventually("looks", PATIENCE, async || {
                (site.calls(&["exists"]) >= begun + many * polled * 8).then_some(())
            })
            .await;
        };
        // The first seconds have the first polls.
        eventually("ten seconds with a hundred scripts", PATIENCE, async || {
            let scripts = ["eval", "evalsha", "fcall"];
            let ran = site.calls(&scripts);
            seconds(10).await;
            (site.calls(&scripts) - ran <= 100).then_some(())
        })
        .await;
        assert_eq!(site.calls(&["blmove"]), 0, "no queue is waited for");
        assert!(
            workers
                .iter()
                .all(|worker| worker.monitor().ready().is_ok())
        );
        stop(workers).await;
    }
}

#[tokio::test]
async fn a_cut_of_the_shared_connections_loses_nothing() {
    for site in Site::all(6).await {
        let Some(server) = &site.server else { continue };
        let gate = Gate::new();
        let workers = site.workers(6, &[osis()], |_| Scripted::gated(&gate)).await;
        let mut ids = Vec::new();
        for client in &site.clients {
            for number in 0..20 {
                let id = client.enqueue(new(&number.to_string())).await.unwrap();
                ids.push((client, id));
            }
        }
        gate.wait_for(5).await;
        for _ in 0..3 {
            let _: u64 = server.say(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        }
        gate.open();
        for (client, id) in ids {
            let ended = eventually("an end", PATIENCE, async || {
                let job = client.status(&id).await.ok()?;
                ["finished", "error"]
                    .contains(&job.status.as_str())
                    .then_some(job)
            });
            let job = ended.await;
            assert!(job.output.is_some(), "{job:?}");
            assert_eq!(job.attempt, 1);
        }
        assert_eq!(stop(workers).await, 0);
    }
}

#[tokio::test]
async fn running_jobs_of_each_context_are_cancelled_and_released() {
    for site in Site::all(4).await {
        let gate = Gate::new();
        let workers = site.workers(4, &[osis()], |_| Scripted::gated(&gate)).await;
        let mut ids = Vec::new();
        for client in &site.clients[..3] {
            ids.push(client.enqueue(new("long")).await.unwrap());
        }
        gate.wait_for(3).await;
        site.clients[0].cancel(&ids[0]).await.unwrap();
        assert!(site.clients[0].result(&ids[0], PATIENCE).await.is_err());
        // A slot is left for a context that runs nothing.
        let last = site.clients[3].enqueue(new("long")).await.unwrap();
        gate.wait_for(4).await;
        assert_eq!(stop(workers).await, 3);
        let waiting = site.clients[3].status(&last).await.unwrap();
        assert_eq!(
            (waiting.status.as_str(), waiting.attempt),
            ("dispatched", 0)
        );
    }
}

#[tokio::test]
async fn damaged_keys_of_a_context_delay_no_job_of_another() {
    let names = [
        "queue:osis",
        "queue:flow",
        "mw:due",
        "mw:lease",
        "mw:feeds",
        "mw:delayed",
        "mw:watch",
        "mw:starts",
        "mw:flows-due",
        "mw:config",
        "mw:events",
    ];
    for site in Site::all(2).await {
        let workers = site.workers(2, &[osis()], |_| Scripted::echo()).await;
        let [damaged, healthy] = &site.clients[..] else {
            unreachable!()
        };
        let prefix = site.contexts[0].keys().prefix();
        for name in names {
            let key = format!("{prefix}{name}");
            damaged.enqueue(new("waits")).await.unwrap();
            raw::<i64>(damaged, &["DEL", &key]).await;
            raw::<()>(damaged, &["SET", &key, "x"]).await;
            let mut shortest = PATIENCE;
            for _ in 0..3 {
                let began = Instant::now();
                healthy.run(new("1")).await.unwrap();
                shortest = shortest.min(began.elapsed());
            }
            // A look comes five times per second.
            assert!(shortest < Duration::from_secs(1), "{name}: {shortest:?}");
            raw::<i64>(damaged, &["DEL", &key]).await;
        }
        let mended = damaged.enqueue(new("2")).await.unwrap();
        let job: Job = damaged.result(&mended, PATIENCE).await.unwrap();
        assert_eq!(job.output.as_deref(), Some(&b"2"[..]));
        stop(workers).await;
    }
}

#[tokio::test]
async fn a_pool_has_a_limit() {
    let site = Site::over(None, 1, None).await;
    let many = vec![site.contexts[0].clone(); MAX_POOL + 1];
    let refused = WorkerPool::open(&site.node, &many, 1).await.unwrap_err();
    assert!(
        refused.to_string().contains("at most 1000 contexts"),
        "{refused}"
    );
}
