//! Databases of one store that share a connection: each call selects its database in the same transaction. So one
//! connection serves all contexts of a process.

use futures_util::future::BoxFuture;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::{Conn, Subscriber, Transport};
use crate::error::is_denied;

/// Replies before that of a call: to MULTI and to SELECT.
const BEFORE: usize = 2;

/// A connection that several databases share. Its own database is the highest of them: after a reconnect to a server
/// without that database the connection fails, so no call ever runs in another database than its own.
#[derive(Debug, Clone)]
pub(crate) struct SharedConn {
    base: Conn,
    /// True if all calls are for the connection's own database.
    is_single: bool,
}

impl SharedConn {
    /// Opens a connection for these databases to the store of `conn`.
    pub(crate) async fn open(conn: &Conn, databases: &[u32]) -> RedisResult<Self> {
        let highest = databases.iter().copied().max().unwrap_or_default();
        let is_single = databases.iter().all(|database| *database == highest);
        let base = conn.another(highest).await?;
        Ok(Self { base, is_single })
    }

    /// Returns a connection to one of the databases: the shared one, or one of its own if the user may not send
    /// transactions.
    pub(crate) async fn select(&self, database: u32) -> RedisResult<Conn> {
        if self.is_single {
            return Ok(self.base.clone());
        }
        let base = self.base.clone();
        let selected = Selected { base, database };
        let tried = selected.call(&redis::cmd("PING")).await;
        match tried {
            Ok(_) => Ok(self.base.with(selected)),
            Err(error) if is_denied(&error) => self.base.another(database).await,
            Err(error) => Err(error),
        }
    }
}

/// One database over a shared connection.
struct Selected {
    base: Conn,
    database: u32,
}

fn odd() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "no reply to a transaction").into()
}

impl Selected {
    /// Sends commands in a transaction. The server refuses all of them, or runs all in this database.
    async fn transact<'a>(
        &self,
        cmds: impl ExactSizeIterator<Item = &'a Cmd>,
    ) -> RedisResult<Vec<Value>> {
        let mut all = redis::pipe();
        all.cmd("MULTI").cmd("SELECT").arg(self.database);
        let count = cmds.len() + BEFORE + 1;
        for cmd in cmds {
            all.add_command(cmd.clone());
        }
        all.cmd("EXEC");
        let mut replies = self.base.transport.call_many(&all, 0, count).await?;
        let Some(Value::Array(mut ran)) = replies.pop().filter(|_| replies.len() + 1 == count)
        else {
            // The first refusal says more than that of EXEC.
            let refused = replies.into_iter().find_map(|it| it.extract_error().err());
            return Err(refused.unwrap_or_else(odd));
        };
        if ran.len() + BEFORE != count {
            return Err(odd());
        }
        let commands = ran.split_off(1);
        // Of SELECT.
        ran.pop().unwrap_or(Value::Nil).extract_error()?;
        Ok(commands)
    }
}

impl Transport for Selected {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut replies = self.transact(std::iter::once(cmd)).await?;
            replies.pop().unwrap_or(Value::Nil).extract_error()
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let cmds: Vec<_> = pipeline.cmd_iter().collect();
            let replies = self.transact(cmds.into_iter()).await?;
            Ok(replies.into_iter().skip(offset).take(count).collect())
        })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let conn = self.base.dedicated().await?;
            let mut select = redis::cmd("SELECT");
            conn.transport.call(select.arg(self.database)).await?;
            Ok(conn)
        })
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        self.base.transport.subscriber()
    }

    fn in_database(&self, database: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        let shared = SharedConn {
            base: self.base.clone(),
            is_single: false,
        };
        Box::pin(async move { shared.select(database).await })
    }

    fn is_connected(&self) -> bool {
        self.base.is_connected()
    }

    fn is_private(&self) -> bool {
        self.base.is_private()
    }

    fn db(&self) -> i64 {
        i64::from(self.database)
    }
}
