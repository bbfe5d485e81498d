//! Calls that block: wait for a job, a message, a reply or a wakeup, each on a connection of its own.

use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use redis::aio::ConnectionLike;
use redis::{RedisResult, Value};

use super::{Fields, job};
use crate::conn::Conn;
use crate::error::{keys_of, timed_out};
use crate::session::Session;
use crate::{Broker, Error};

/// The longest that one wait for a job lasts. A listener that died is watched for as long, since an id may
/// come to it until then.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(30);

/// Past the time that the server was asked to wait, how long its answer may take.
const GRACE: Duration = Duration::from_secs(2);

/// So often a server says that it was told to end a wait, before that is taken for a wait on another one.
const UNBLOCKS: u32 = 3;

/// A connection on which calls wait at the server, one after the other.
#[derive(Debug, Clone)]
pub struct BlockingConn {
    conn: Conn,
    client_id: u64,
}

/// What the server answers to a call that may wait there for `wait`.
async fn in_time<T>(wait: Duration, asked: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(wait + GRACE, asked)
        .await
        .unwrap_or_else(|_| Err(timed_out()))
}

fn failed(verb: &'static str) -> impl FnOnce(redis::RedisError) -> Error {
    move |source| Error::Call { verb, source }
}

/// An error of this command, with its keys.
fn of(verb: &'static str, cmd: &redis::Cmd) -> impl Fn(redis::RedisError) -> Error {
    move |source| Error::of_keys(verb, &keys_of(cmd), source)
}

impl BlockingConn {
    /// The answer of a command that may wait for `wait` at the server.
    pub(super) async fn call(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<Value, Error> {
        let asked = in_time(wait, cmd.query_async(&mut self.conn.clone())).await;
        asked.map_err(of(verb, cmd))
    }

    /// The same for a command with others behind it, which are answered together: first its answer, then the others'.
    pub(super) async fn call_all(
        &self,
        verb: &'static str,
        all: &redis::Pipeline,
        wait: Duration,
    ) -> Result<impl Iterator<Item = Value> + use<>, Error> {
        let mut conn = self.conn.clone();
        let asked = conn.req_packed_commands(all, 0, all.len());
        let answers = in_time(wait, asked).await.map_err(failed(verb))?;
        let mut answers = answers.into_iter();
        let first = answers.next().unwrap_or(Value::Nil).extract_error();
        let first = first.map_err(|source| {
            let keys = all.cmd_iter().next().map(keys_of).unwrap_or_default();
            Error::of_keys(verb, &keys, source)
        })?;
        Ok(std::iter::once(first).chain(answers))
    }

    /// The same for a command that takes what it finds. While the server stands still it is not given up, but ended, over
    /// the connection of `session`, once the server answers: left there, it would take what comes next with it. Where the
    /// server is gone, the connection breaks; and one that answers, but ends nothing, is another server in its place.
    pub(super) async fn call_to_its_end<K>(
        &self,
        session: &Session<K>,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<Value, Error> {
        let mut waits = self.conn.clone();
        let asked = cmd.query_async(&mut waits);
        tokio::pin!(asked);
        if let Ok(answer) = tokio::time::timeout(wait + GRACE, &mut asked).await {
            return answer.map_err(of(verb, cmd));
        }
        let mut answered = 0;
        while answered < UNBLOCKS {
            tokio::select! {
                biased;
                answer = &mut asked => return answer.map_err(of(verb, cmd)),
                ended = session.unblock(self) => match ended {
                    Ok(()) => answered += 1,
                    Err(error) => tracing::debug!(%error, "{verb}: the server stands still, and is waited for"),
                },
            }
            // The word to end it may have come before the wait.
            if let Ok(answer) = tokio::time::timeout(GRACE, &mut asked).await {
                return answer.map_err(of(verb, cmd));
            }
        }
        Err(Error::timed_out(verb))
    }

    /// Waits until something comes to one of these commands' keys. False if nothing came in time.
    async fn comes(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<bool, Error> {
        Ok(self.call(verb, cmd, wait).await? != Value::Nil)
    }

    /// Waits until an id comes to `list` and moves it into `prefetch`. False if none came in time.
    pub(super) async fn move_id(
        &self,
        list: &str,
        prefetch: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let wait = wait.min(MAX_WAIT);
        let mut cmd = redis::cmd("BLMOVE");
        cmd.arg(list)
            .arg(prefetch)
            .arg("RIGHT")
            .arg("LEFT")
            .arg(wait.as_secs_f64());
        self.comes("wait_for_job", &cmd, wait).await
    }
}

impl<K> Session<K> {
    /// Makes a connection to wait on.
    ///
    /// # Errors
    /// If the server does not let us.
    pub async fn blocking_conn(&self) -> Result<BlockingConn, Error> {
        let conn = self.conn.dedicated().await.map_err(failed("connect"))?;
        // A server that went away after the handshake would never say it.
        let mut asks = conn.clone();
        let mut id = redis::cmd("CLIENT");
        let asked = id.arg("ID").query_async(&mut asks);
        let client_id = in_time(Duration::ZERO, asked).await;
        let client_id = client_id.map_err(failed("connect"))?;
        Ok(BlockingConn { conn, client_id })
    }

    /// Ends a wait on `blocking`, if there is one.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn unblock(&self, blocking: &BlockingConn) -> Result<(), Error> {
        redis::cmd("CLIENT")
            .arg("UNBLOCK")
            .arg(blocking.client_id)
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed("unblock"))
    }
}

impl Broker {
    /// Waits until an id comes to `queue` and moves it into the worker's prefetch list for it, where
    /// [`Broker::claim`] finds it: the id is in a list at every moment. Wakes one waiting worker, and sees
    /// what any client pushes. False if none came in time, which is 30 seconds at the longest.
    ///
    /// # Errors
    /// If the connection breaks, or the queue is no list.
    pub async fn wait_for_job(
        &self,
        blocking: &BlockingConn,
        worker: &str,
        queue: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let prefetch = self.keys.feed(worker, queue);
        blocking.move_id(queue, &prefetch, wait).await
    }

    /// Waits for the wakeup that a job came to be the first of all that are delayed: who gets it looks when
    /// that is ([`Broker::promote`] tells). It wakes one of those who wait. False if none came in time.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn wait_for_due(
        &self,
        blocking: &BlockingConn,
        wait: Duration,
    ) -> Result<bool, Error> {
        let mut cmd = redis::cmd("BLPOP");
        cmd.arg(self.keys.due()).arg(wait.as_secs_f64());
        blocking.comes("wait_for_due", &cmd, wait).await
    }

    /// Waits for a reply on `hero:q:reply:{id}`. It says that the job has ended; how, the record
    /// tells. False if none came in time.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn wait_for_reply(
        &self,
        blocking: &BlockingConn,
        id: &JobId,
        wait: Duration,
    ) -> Result<bool, Error> {
        let cmd = self.for_reply(id, wait);
        blocking.comes("wait_for_reply", &cmd, wait).await
    }

    /// The same, and the record as it is then, if there is one: asked for together, it comes with the reply.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn wait_for_result(
        &self,
        blocking: &BlockingConn,
        id: &JobId,
        wait: Duration,
    ) -> Result<(bool, Option<Job>), Error> {
        let mut record = redis::cmd("HGETALL");
        record.arg(self.keys.job_hash_key(id));
        let mut both = redis::pipe();
        both.add_command(self.for_reply(id, wait))
            .add_command(record);
        let mut answers = blocking.call_all("wait_for_result", &both, wait).await?;
        let replied = answers.next() != Some(Value::Nil);
        // What is no record is another's: whoever asks for it alone is told so.
        let fields = answers
            .next()
            .and_then(|answer| redis::from_redis_value::<Fields>(answer).ok());
        let fields = fields.filter(|fields| !fields.is_empty());
        Ok((
            replied,
            fields.map(|fields| job(&self.keys, id.as_str(), fields)),
        ))
    }

    fn for_reply(&self, id: &JobId, wait: Duration) -> redis::Cmd {
        let mut cmd = redis::cmd("BLPOP");
        cmd.arg(self.keys.reply_queue_key(id))
            .arg(wait.as_secs_f64());
        cmd
    }
}
