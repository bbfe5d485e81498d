//! Jobs of contexts: a worker and a client of the library beside plain commands, in both layouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use meshwork::context::{ContextError, ContextHandle, Identity, Node, new_key};
use meshwork::runtime::Run;
use meshwork::runtime::log::Stream;
use meshwork::{Client, Error, JobRequest, Target, TlsFiles, Worker, WorkerHandle};
use meshwork_broker::Broker;
use meshwork_broker::conn::Conn;
use meshwork_model::access::{Object, Operation, Role};
use meshwork_model::keys::context::{ContextId, ContextLayout, JobKey};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

use crate::worker_support::{Gate, Scripted, osis, raw};

const PATIENCE: Duration = Duration::from_secs(30);

/// A context and somebody who may do all in it.
struct Place {
    _server: Option<Arc<RealServer>>,
    node: Node,
    context: ContextHandle,
    me: Identity,
    client: Client,
}

impl Place {
    async fn in_layout(server: Option<Arc<RealServer>>, layout: ContextLayout) -> Self {
        let conn = match &server {
            None => Conn::embedded(&meshwork_embedded::Handle::in_memory()),
            Some(server) => {
                let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
                Conn::open(&target, &Default::default()).await.unwrap()
            }
        };
        let node = Node::of(&Broker::new(conn, JobKeys::default()));
        let key = new_key();
        node.trust(key.public(), None).await.unwrap();
        let me = node.identify(key).await.unwrap();
        let context = node.create_context(&me, ContextId::new(7), Some(layout));
        let context = context.await.unwrap();
        let client = context.client(&me, Object::Job, Operation::Create).await;
        Self {
            _server: server,
            node,
            client: client.unwrap(),
            context,
            me,
        }
    }

    /// Both layouts, on the embedded engine and on redis-server.
    async fn all() -> Vec<Self> {
        let mut places = Vec::new();
        for layout in ContextLayout::ALL {
            places.push(Self::in_layout(None, layout).await);
            if let Some(server) = RealServer::redis().start() {
                places.push(Self::in_layout(Some(Arc::new(server)), layout).await);
            }
        }
        places
    }

    /// A key as the layout writes it.
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.context.keys().prefix())
    }

    async fn worker(&self, runner: Arc<Scripted>) -> WorkerHandle {
        let queues = self.context.client(&self.me, Object::Queue, Operation::Pop);
        let worker = Worker::new(&queues.await.unwrap()).runtime(osis(), runner);
        worker.start().await.unwrap()
    }

    /// Writes a job as a plain client does, with these fields besides, and pushes its key.
    async fn plain_job(&self, id: u32, fields: &[&str]) {
        let (key, number) = (self.key(&format!("job:12:{id}")), id.to_string());
        let always = [
            ["id", &number],
            ["caller_id", "12"],
            ["context_id", "7"],
            ["script", "print(1)"],
            ["script_type", "osis"],
            ["timeout", "60"],
            ["retries", "0"],
            ["env_vars", "{}"],
            ["result", "{}"],
            ["created_at", "1700000000"],
            ["updated_at", "1700000000"],
        ];
        let words = ["HSET", &key]
            .into_iter()
            .chain(always.into_iter().flatten());
        let words: Vec<_> = words.chain(fields.iter().copied()).collect();
        raw::<i64>(&self.client, &words).await;
        let queue = self.key("queue:osis");
        raw::<i64>(&self.client, &["LPUSH", &queue, &key]).await;
    }

    async fn field(&self, name: &str, field: &str) -> String {
        let key = self.key(name);
        let found = raw::<Option<String>>(&self.client, &["HGET", &key, field]).await;
        found.unwrap_or_default()
    }

    async fn has_status(&self, name: &str, status: &str) {
        eventually("the status", PATIENCE, async || {
            (self.field(name, "status").await == status).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn jobs_of_plain_clients_run_and_wait_for_others() {
    for place in Place::all().await {
        let worker = place.worker(Scripted::echo()).await;
        place.plain_job(2001, &["status", "dispatched"]).await;
        place.has_status("job:12:2001", "finished").await;
        let result = place.field("job:12:2001", "result").await;
        assert_eq!(result, r#"{"result":"print(1)"}"#);
        let updated: u32 = place
            .field("job:12:2001", "updated_at")
            .await
            .parse()
            .unwrap();
        assert!(updated > 1_700_000_000, "whole seconds");
        // One that waits for a job of the same caller, and one that waits for a gate too.
        let waits = ["status", "waiting_for_prerequisites"];
        let after = |more: [&'static str; 4]| [waits.as_slice(), &more].concat();
        place
            .plain_job(
                2003,
                &after(["dependends", "[2002]", "prerequisites", "[]"]),
            )
            .await;
        let gate = after(["dependends", "[2003]", "prerequisites", r#"["approved"]"#]);
        place.plain_job(2004, &gate).await;
        eventually("both are taken off the queue", PATIENCE, async || {
            let queue = place.key("queue:osis");
            (raw::<u64>(&place.client, &["LLEN", &queue]).await == 0).then_some(())
        })
        .await;
        assert_eq!(place.field("job:12:2003", "status").await, waits[1]);
        place.plain_job(2002, &["status", "dispatched"]).await;
        place.has_status("job:12:2002", "finished").await;
        place.has_status("job:12:2003", "finished").await;
        assert_eq!(place.field("job:12:2004", "status").await, waits[1]);
        place.client.open_gate("approved").await.unwrap();
        place.has_status("job:12:2004", "finished").await;
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_client_submits_retries_cancels_and_reads_logs() {
    for place in Place::all().await {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let runner = Scripted::new(move |run: Run| match run.job.script.as_slice() {
            b"again" if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
                Report::failed(Failure::new(FailureKind::Script, "not yet"))
            }
            b"map" => Report::done(r#"{"rows":5}"#),
            b"log" => {
                let mut out = run.log.writer(Stream::Stdout);
                out.push(b"read 5 rows\n");
                Report::done("")
            }
            script => Report::done(script),
        });
        let worker = place.worker(runner).await;
        let new = |script: &str| JobRequest::new(osis(), script);
        let (client, keys) = (&place.client, place.context.keys());
        let number = |id| keys.job_id(JobKey::new(place.me.id().0, id));

        let map = client.run(new("map")).await.unwrap();
        assert_eq!(map.job_id(), number(1), "the first number of the caller");
        let record = format!("job:{}:1", place.me.id());
        let stored = r#"{"result":"{\"rows\":5}"}"#;
        assert_eq!(place.field(&record, "result").await, stored);
        assert_eq!(map.output.as_deref(), Some(&br#"{"rows":5}"#[..]));
        // A plain client has taken the next one.
        raw::<i64>(client, &["HSET", number(2).as_str(), "status", "finished"]).await;
        let again = new("again").retries(1).backoff(Duration::from_millis(10));
        let again = client.run(again).await.unwrap();
        assert_eq!(
            (again.job_id(), tries.load(Ordering::SeqCst)),
            (number(3), 2)
        );
        let delayed = client
            .run(new("later").delay(Duration::from_millis(50)))
            .await;
        assert_eq!(delayed.unwrap().output.as_deref(), Some(&b"later"[..]));
        let logged = client.run(new("log")).await.unwrap();
        let lines = client.log_lines(&logged.job_id()).await.unwrap();
        assert!(
            lines.iter().any(|line| line.line == b"read 5 rows"),
            "{lines:?}"
        );
        // One that waits is cancelled, one after it fails with it.
        let first = client.enqueue(new("1").delay(PATIENCE)).await.unwrap();
        let after = client
            .enqueue(new("2").depends_on(first.clone()))
            .await
            .unwrap();
        client.cancel(&first).await.unwrap();
        let failed = client.result(&after, PATIENCE).await;
        assert!(matches!(failed, Err(Error::Failed { .. })), "{failed:?}");
        let taken = client.enqueue(new("x").id(number(1))).await;
        assert!(matches!(taken, Err(Error::JobExists { .. })), "{taken:?}");
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_plain_runner_works_beside_ours() {
    for place in Place::all().await {
        let (gate, dispatched) = (Gate::new(), ["status", "dispatched"]);
        let ours = Scripted::gated(&gate);
        let queues = place
            .context
            .client(&place.me, Object::Queue, Operation::Pop);
        let worker = Worker::new(&queues.await.unwrap()).concurrency(1);
        let worker = worker.runtime(osis(), ours.clone()).start().await.unwrap();
        place.plain_job(1, &dispatched).await;
        gate.wait_for(1).await;
        // Ours is busy, and waits for nothing: the plain one takes what comes.
        place.plain_job(2, &dispatched).await;
        let queue = place.key("queue:osis");
        let (_, job): (String, String) = raw(&place.client, &["BRPOP", &queue, "20"]).await;
        assert_eq!(job, place.key("job:12:2"));
        raw::<i64>(&place.client, &["HSET", &job, "status", "started"]).await;
        let ended = ["result", r#"{"rows":"5"}"#, "status", "finished"];
        raw::<i64>(&place.client, &[&["HSET", &job], &ended[..]].concat()).await;
        // What it has ended is dropped where it comes again.
        raw::<i64>(&place.client, &["LPUSH", &queue, &job]).await;
        place.plain_job(3, &dispatched).await;
        gate.open();
        place.has_status("job:12:3", "finished").await;
        assert_eq!(place.field("job:12:2", "result").await, r#"{"rows":"5"}"#);
        assert_eq!(ours.runs(), 2);
        worker.stop().await;
    }
}

#[tokio::test]
async fn who_may_not_gets_no_client() {
    let place = Place::in_layout(None, ContextLayout::Db).await;
    let key = new_key();
    place.node.trust(key.public(), None).await.unwrap();
    let bob = place.node.identify(key).await.unwrap();
    let operations = [
        (Object::Job, Operation::Create),
        (Object::Queue, Operation::Pop),
    ];
    for (object, operation) in operations {
        let refused = place.context.client(&bob, object, operation).await;
        assert!(
            matches!(refused, Err(ContextError::Denied(_))),
            "{refused:?}"
        );
    }
    place
        .context
        .grant(&place.me, Role::Executor, bob.id())
        .await
        .unwrap();
    place
        .context
        .client(&bob, Object::Queue, Operation::Pop)
        .await
        .unwrap();
    let refused = place
        .context
        .client(&bob, Object::Job, Operation::Create)
        .await;
    assert!(
        matches!(refused, Err(ContextError::Denied(_))),
        "{refused:?}"
    );
    let refusals = place.context.refusals(&place.me, 10).await.unwrap();
    assert_eq!(refusals.iter().map(|row| row.count).sum::<u64>(), 3);
    let outside = Client::new(place.client.broker().clone());
    assert!(matches!(outside.next_job_id().await, Err(Error::NoContext)));
}
