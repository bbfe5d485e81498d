//! Protocols of others: a toy over the worker's public trait, whose workers are killed.

mod toy;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::InvalidSetting;
use meshwork::runtime::{Run, Runtime};
use meshwork::worker::{self, Config, Outages, WorkerHandle};
use meshwork_model::outcome::Report;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{Tool, shared};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;

use toy::{DONE, QUEUE, Toy};

/// Timeout of each step, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// The shortest there is, so that the jobs of a killed worker come back soon.
const LEASE: Duration = Duration::from_millis(300);
/// Jobs that begin for each worker that is killed.
const BETWEEN: usize = 100;
const KILLS: usize = 6;
const JOBS: usize = BETWEEN * (KILLS + 2);
const URL: &str = "TOY_URL";

/// Tells of each run that begins.
struct Begins(MultiplexedConnection);

impl Runtime for Begins {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        let mut conn = self.0.clone();
        async move {
            let pushed = conn.rpush::<_, _, ()>("toy:begun", &run.job.id).await;
            pushed.unwrap();
            Report::done(Vec::new())
        }
        .boxed()
    }
}

/// A connection whose answers may take as long as they take.
async fn open(client: &redis::Client) -> redis::RedisResult<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let made = client.get_multiplexed_async_connection_with_config(&config);
    made.await
}

async fn start(url: &str, name: &str, config: Config) -> Result<WorkerHandle, worker::StartError> {
    let client = redis::Client::open(url).unwrap();
    let conn = open(&client).await.unwrap();
    let toy = Toy {
        runner: Arc::new(Begins(conn.clone())),
        client,
        conn,
        worker: name.to_owned(),
        list: format!("toy:of:{name}"),
        queues: watch::Sender::new(Arc::new(vec![QUEUE.to_owned()])),
        outages: Outages::default(),
    };
    worker::start(toy, config)
}

fn config() -> Config {
    let mut config = Config::default();
    config.lease = LEASE;
    config
}

/// A worker that only a kill ends, in a process of its own.
#[test]
#[ignore = "a process of the other tests"]
fn child() {
    let url = std::env::var(URL).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let name = format!("child-{}", std::process::id());
        let _worker = start(&url, &name, config()).await.unwrap();
        std::future::pending::<()>().await;
    });
}

fn spawn(url: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    // The harness knows its tests without the name of the program.
    let (_, module) = module_path!().split_once("::").unwrap();
    child.args(["--exact", &format!("{module}::child"), "--ignored"]);
    child.env(URL, url).stdout(Stdio::null());
    child.spawn().unwrap()
}

async fn put(conn: &mut MultiplexedConnection, jobs: usize) {
    let ids: Vec<_> = (0..jobs).map(|id| id.to_string()).collect();
    conn.lpush::<_, _, ()>(QUEUE, ids).await.unwrap();
}

async fn ended(conn: &MultiplexedConnection, jobs: usize) {
    eventually(&format!("{jobs} jobs have ended"), BOUND, async || {
        let ended: usize = conn.clone().llen(DONE).await.unwrap();
        (ended >= jobs).then_some(())
    })
    .await;
}

/// `kill -9` ends workers in the midst of their runs, and each job ends once.
#[tokio::test(flavor = "multi_thread")]
async fn each_job_ends_whichever_worker_is_killed() {
    let Some(database) = shared(Tool::Redis) else {
        return;
    };
    let url = database.url();
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut conn = open(&client).await.unwrap();
    put(&mut conn, JOBS).await;
    let mut children = vec![spawn(&url), spawn(&url)];
    for kill in 1..=KILLS {
        eventually("runs begin", BOUND, async || {
            let begun: usize = conn.clone().llen("toy:begun").await.unwrap();
            (begun >= kill * BETWEEN).then_some(())
        })
        .await;
        let mut killed = children.remove(0);
        killed.kill().unwrap();
        killed.wait().unwrap();
        children.push(spawn(&url));
    }
    ended(&conn, JOBS).await;
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut ended: Vec<String> = conn.lrange(DONE, 0, -1).await.unwrap();
    ended.sort_unstable();
    let mut all: Vec<_> = (0..JOBS).map(|id| id.to_string()).collect();
    all.sort_unstable();
    assert_eq!(ended, all);
    assert_eq!(conn.llen::<_, usize>(QUEUE).await.unwrap(), 0);
}

/// A worker that stops leaves nothing in its hand, and waits take what comes to an empty queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_waited_for_runs_and_nothing_is_left() {
    let Some(database) = shared(Tool::Redis) else {
        return;
    };
    let client = redis::Client::open(database.url()).unwrap();
    let mut conn = open(&client).await.unwrap();
    let worker = start(&database.url(), "toy", config()).await.unwrap();
    worker.registered().await;
    worker.monitor().ready().unwrap();
    eventually("it waits", BOUND, async || {
        let waits = database.blocked_in(&["blmove"]).await.unwrap();
        (!waits.is_empty()).then_some(())
    })
    .await;
    put(&mut conn, 1).await;
    ended(&conn, 1).await;
    assert_eq!(worker.stop().await, 0);
    assert_eq!(conn.llen::<_, usize>("toy:of:toy").await.unwrap(), 0);
}

/// The engine's settings hold for every protocol.
#[tokio::test]
async fn a_lease_of_nothing_is_refused() {
    let Some(database) = shared(Tool::Redis) else {
        return;
    };
    let mut config = config();
    config.lease = Duration::ZERO;
    let refused = start(&database.url(), "toy", config).await.unwrap_err();
    let worker::StartError::Setting(InvalidSetting { name, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(name, "lease");
}
