//! A protocol in one file, by what users of the library have: ids on a list of Redis, of which each is to end once.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork::runtime::Runtime;
use meshwork::worker::*;
use meshwork_model::{job::Job, trace::TraceContext};
use redis::Direction::{Left, Right};
use redis::aio::MultiplexedConnection as Conn;
use redis::{AsyncCommands, Client, RedisError, RedisResult, Script};
use tokio::sync::watch;

use super::open;

/// The list on which ids wait, and the one of those that have ended.
pub(super) const QUEUE: &str = "toy:jobs";
pub(super) const DONE: &str = "toy:done";
const WORKERS: &str = "toy:workers";
/// Moves an id off a worker's list (KEYS 1) to another one (KEYS 2), if it is there.
const GIVE: &str = "local has = redis.call('LREM', KEYS[1], 1, ARGV[1])
if has == 1 then redis.call('RPUSH', KEYS[2], ARGV[1]) end
return has";
/// Puts back the ids of workers (KEYS 1) that are not alive, on the list (KEYS 2).
const RECLAIM: &str = "for _, name in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if redis.call('EXISTS', 'toy:alive:' .. name) == 0 then
    repeat until not redis.call('LMOVE', 'toy:of:' .. name, KEYS[2], 'LEFT', 'RIGHT')
    redis.call('SREM', KEYS[1], name)
  end
end";

pub(super) struct Toy {
    pub(super) client: Client,
    pub(super) conn: Conn,
    pub(super) worker: String,
    pub(super) list: String,
    pub(super) queues: watch::Sender<Arc<Vec<String>>>,
    pub(super) outages: Outages,
    pub(super) runner: Arc<dyn Runtime>,
}

type Res<T> = Result<T, CallError>;

fn of(verb: &'static str) -> impl FnOnce(RedisError) -> CallError {
    move |source| CallError::Call { verb, source }
}

impl Toy {
    /// Moves an id from this worker. False if it does not have it.
    async fn give(&self, id: &str, to: &str) -> Res<bool> {
        let (script, mut conn) = (Script::new(GIVE), self.conn.clone());
        let mut call = script.key(&self.list);
        let moved = call.key(to).arg(id).invoke_async(&mut conn).await;
        moved.map_err(of("give"))
    }

    async fn claim(&self, want: usize) -> Res<Fetched<String>> {
        let (mut all, mut conn) = (redis::pipe(), self.conn.clone());
        (0..want).for_each(|_| _ = all.lmove(QUEUE, &self.list, Right, Left));
        let ids: RedisResult<Vec<Option<String>>> = all.query_async(&mut conn).await;
        let ids = ids.map_err(of("claim"))?;
        Ok(Fetched::of(ids.into_iter().flatten().collect()))
    }
}

impl Protocol for Toy {
    type Job = String;
    type Queues = Vec<String>;
    type Conn = Conn;
    type WaitConn = Conn;
    const PUSH_DELIVERY: bool = true;

    fn worker(&self) -> &str {
        &self.worker
    }
    fn outages(&self) -> &Outages {
        &self.outages
    }
    fn queues(&self) -> &watch::Sender<Arc<Vec<String>>> {
        &self.queues
    }
    fn id(id: &String) -> Cow<'_, str> {
        id.into()
    }
    fn queue(_: &String) -> &str {
        QUEUE
    }
    async fn complete_and_claim(
        &self,
        _: &Config,
        results: &[Completion<String>],
        fetch: Option<&FetchRequest>,
    ) -> Exchanged<String> {
        let each = results.iter().map(|one| self.give(one.job(), DONE));
        let each = join_all(each).await.into_iter();
        let completed: Res<_> = each.map(|one| one.map(Completed::of)).collect();
        let fetched = match fetch {
            Some(fetch) if completed.is_ok() => Some(self.claim(fetch.want).await),
            _ => None,
        };
        Exchanged { completed, fetched }
    }
    async fn prepare(&self, config: &Config, id: &Arc<String>, _: Option<&TraceContext>) -> Step {
        let (runner, job) = (self.runner.clone(), Job::from_fields(id, Vec::new()));
        let prepared = Prepared::new(runner, Arc::new(job), config.timeout);
        Step::Run(Box::new(prepared))
    }
    async fn fail(&self, id: &String, _: &FailedRun<'_>) -> Res<Failed> {
        let again = self.give(id, QUEUE).await?.then_some(Failed::Retried(1));
        Ok(again.unwrap_or(Failed::Stale))
    }
    async fn release(&self, id: &String) -> Res<bool> {
        self.give(id, QUEUE).await
    }
    async fn wait_conn(&self) -> Res<Conn> {
        self.connect().await
    }
    async fn wait(
        &self,
        _: &Config,
        conn: &Conn,
        _: &str,
        most: Duration,
        _: Duration,
    ) -> Res<Waited<String>> {
        let (mut conn, most) = (conn.clone(), most.as_secs_f64());
        let came = conn.blmove(QUEUE, &self.list, Right, Left, most).await;
        let came: Option<String> = came.map_err(of("wait"))?;
        Ok(came.map_or(Waited::Nothing, Waited::Job))
    }
    async fn connect(&self) -> Res<Conn> {
        open(&self.client).await.map_err(of("connect"))
    }
    async fn renew(
        &self,
        conn: &Conn,
        lease: Duration,
        _: &[String],
        _: Option<&Vec<String>>,
    ) -> Res<Renewed> {
        let (alive, lease) = (format!("toy:alive:{}", self.worker), lease.as_millis());
        let (mut both, mut conn) = (redis::pipe(), conn.clone());
        both.pset_ex(alive, 1, lease as u64)
            .sadd(WORKERS, &self.worker);
        both.exec_async(&mut conn).await.map_err(of("renew"))?;
        Ok(Renewed::default())
    }
    async fn reclaim(&self, conn: &Conn, _: Duration, _: &dyn Intake<String>) -> Res<()> {
        let (script, mut conn) = (Script::new(RECLAIM), conn.clone());
        let mut call = script.key(WORKERS);
        let reclaimed = call.key(QUEUE).invoke_async(&mut conn).await;
        reclaimed.map_err(of("reclaim"))
    }
}
