//! Blocking calls: wait for a job, a message, a reply or a wake-up, each on a connection of its own.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use redis::aio::ConnectionLike;
use redis::{RedisResult, Value};

use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::error::{keys_of, timed_out};
use crate::session::Session;
use crate::verb::{Fields, job};

/// Greatest duration of one wait for a job. A dead worker's prefetch list is watched for as long, because an id may
/// arrive there until then.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);

/// Extra time for the server's answer, beyond the time for which it waits.
const GRACE: Duration = Duration::from_secs(2);

/// Number of times that a server may claim to have ended a wait, before it is taken for another server.
const UNBLOCKS: u32 = 3;

/// A connection for blocking calls, one after the other.
#[derive(Debug, Clone)]
pub struct BlockingConn {
    conn: Conn,
    client_id: u64,
}

/// Returns the answer to a call that may block for `wait`.
async fn in_time<T>(
    wait: Duration,
    pending: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    tokio::time::timeout(wait + GRACE, pending)
        .await
        .unwrap_or_else(|_| Err(timed_out()))
}

fn failed(verb: &'static str) -> impl FnOnce(redis::RedisError) -> Error {
    move |source| Error::Call { verb, source }
}

/// Returns an error of this command, with its keys.
fn of(verb: &'static str, cmd: &redis::Cmd) -> impl Fn(redis::RedisError) -> Error {
    move |source| Error::of_keys(verb, &keys_of(cmd), source)
}

impl BlockingConn {
    /// Returns the answer to a command that may block for `wait`.
    pub(crate) async fn call(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<Value, Error> {
        let pending = in_time(wait, cmd.query_async(&mut self.conn.clone())).await;
        pending.map_err(of(verb, cmd))
    }

    /// Sends a command that may block, with others behind it. Returns its answer first, then those of the others.
    pub(crate) async fn call_all(
        &self,
        verb: &'static str,
        all: &redis::Pipeline,
        wait: Duration,
    ) -> Result<impl Iterator<Item = Value> + use<>, Error> {
        let mut conn = self.conn.clone();
        let pending = conn.req_packed_commands(all, 0, all.len());
        let answers = in_time(wait, pending).await.map_err(failed(verb))?;
        let mut answers = answers.into_iter();
        let first = answers.next().unwrap_or(Value::Nil).extract_error();
        let first = first.map_err(|source| {
            let keys = all.cmd_iter().next().map(keys_of).unwrap_or_default();
            Error::of_keys(verb, &keys, source)
        })?;
        Ok(std::iter::once(first).chain(answers))
    }

    /// Sends a command that removes what it finds. While the server hangs, the command is not abandoned, because it
    /// would remove a later element. Instead, it is ended over the connection of `session` once the server answers.
    /// If the server is gone, the connection breaks. A server that answers, but ends nothing, is another server in
    /// its place.
    pub(crate) async fn call_to_its_end<K>(
        &self,
        session: &Session<K>,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<Value, Error> {
        let mut waits = self.conn.clone();
        let pending = cmd.query_async(&mut waits);
        tokio::pin!(pending);
        if let Ok(answer) = tokio::time::timeout(wait + GRACE, &mut pending).await {
            return answer.map_err(of(verb, cmd));
        }
        let mut answered = 0;
        while answered < UNBLOCKS {
            tokio::select! {
                biased;
                answer = &mut pending => return answer.map_err(of(verb, cmd)),
                ended = session.unblock(self) => match ended {
                    Ok(()) => answered += 1,
                    Err(error) => tracing::debug!(%error, "{verb}: no answer from the server: waiting"),
                },
            }
            // The request to end the wait may have arrived before the wait.
            if let Ok(answer) = tokio::time::timeout(GRACE, &mut pending).await {
                return answer.map_err(of(verb, cmd));
            }
        }
        Err(Error::timed_out(verb))
    }

    /// Waits until an element arrives in one of the command's keys. Returns false after the timeout.
    async fn comes(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
        wait: Duration,
    ) -> Result<bool, Error> {
        Ok(self.call(verb, cmd, wait).await? != Value::Nil)
    }

    /// Waits until something comes to `list`, and takes it off. False if nothing came in time.
    pub(crate) async fn pops(
        &self,
        verb: &'static str,
        list: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let mut cmd = redis::cmd("BLPOP");
        cmd.arg(list).arg(wait.as_secs_f64());
        self.comes(verb, &cmd, wait).await
    }

    /// Waits until an id arrives in `list` and moves it to `prefetch`. Returns false after the timeout.
    pub(crate) async fn move_id(
        &self,
        list: &str,
        prefetch: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let wait = wait.min(MAX_WAIT);
        let cmd = move_id(list, prefetch, wait);
        self.comes("wait_for_job", &cmd, wait).await
    }
}

/// Returns the command that waits for an id in `list` and moves it to `prefetch`.
pub(super) fn move_id(list: &str, prefetch: &str, wait: Duration) -> redis::Cmd {
    let mut cmd = redis::cmd("BLMOVE");
    cmd.arg(list).arg(prefetch).arg("RIGHT").arg("LEFT");
    cmd.arg(wait.as_secs_f64());
    cmd
}

impl<K> Session<K> {
    /// Opens a connection for blocking calls.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub async fn blocking_conn(&self) -> Result<BlockingConn, Error> {
        let conn = self.conn.dedicated().await.map_err(failed("connect"))?;
        // Without a timeout, a server that vanished after the handshake would never be noticed.
        let mut asks = conn.clone();
        let mut id = redis::cmd("CLIENT");
        let pending = id.arg("ID").query_async(&mut asks);
        let client_id = in_time(Duration::ZERO, pending).await;
        let client_id = client_id.map_err(failed("connect"))?;
        Ok(BlockingConn { conn, client_id })
    }

    /// Ends a wait on `blocking`, if there is one.
    ///
    /// # Errors
    /// The server refuses the call.
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
    /// Waits until an id arrives in `queue` and moves the id to the worker's prefetch list, where [`Broker::claim`]
    /// finds it. The id is in a list at every moment. Wakes one waiting worker, for ids of any client. Returns false
    /// after the timeout, which is at most 30 seconds.
    ///
    /// # Errors
    /// The connection breaks, or the queue is not a list.
    #[boxed]
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

    /// Waits until there is an element in `list`, and leaves it there. All who wait are woken. Returns false after the timeout.
    ///
    /// # Errors
    /// The connection breaks, or the key is no list.
    #[boxed]
    pub async fn wait_for_element(
        &self,
        blocking: &BlockingConn,
        list: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        // From its end to its end.
        let mut cmd = redis::cmd("BLMOVE");
        cmd.arg(list).arg(list).arg("RIGHT").arg("RIGHT");
        cmd.arg(wait.as_secs_f64());
        blocking.comes("wait_for_element", &cmd, wait).await
    }

    /// Waits for the wake-up that a new job is the first of all delayed ones. The receiver then checks its due time
    /// ([`Broker::promote`] returns it). One waiting worker is woken. Returns false after the timeout.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
    pub async fn wait_for_due(
        &self,
        blocking: &BlockingConn,
        wait: Duration,
    ) -> Result<bool, Error> {
        blocking.pops("wait_for_due", &self.keys.due(), wait).await
    }

    /// Waits for a reply on `hero:q:reply:{id}`, which means that the job has ended; its record has the outcome.
    /// Returns false after the timeout.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
    pub async fn wait_for_reply(
        &self,
        blocking: &BlockingConn,
        id: &JobId,
        wait: Duration,
    ) -> Result<bool, Error> {
        let cmd = self.for_reply(id, wait);
        blocking.comes("wait_for_reply", &cmd, wait).await
    }

    /// Waits for a reply, and returns the record with it, if there is one. Both are requested together.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
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
        // A key of another type is ignored here; a call for the record alone reports it.
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
