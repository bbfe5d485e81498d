//! Acknowledgement by replicas: enqueued jobs count as accepted only after replicas have them, so that a failover
//! does not lose them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::conn::Conn;
use crate::error::timed_out;

/// The number of replicas that must confirm enqueued jobs, and the time for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitReplicas {
    /// Number of replicas.
    pub replicas: u32,
    /// Timeout, in whole milliseconds.
    pub timeout: Duration,
}

/// Extra time for the server's answer, beyond the time for which it waits.
const GRACE: Duration = Duration::from_secs(2);

/// The rule and its connection. The server confirms writes of the same connection, so this one is not reconnected: a
/// new one would confirm writes that it never made. No other calls use it, because each confirmation blocks the calls
/// behind it.
#[derive(Debug, Clone)]
pub(crate) struct ReplicatedConn {
    rule: WaitReplicas,
    conn: Arc<Mutex<Option<Conn>>>,
}

impl ReplicatedConn {
    pub(crate) fn new(rule: WaitReplicas) -> Self {
        let conn = Arc::default();
        Self { rule, conn }
    }

    /// Returns the same rule for another connection.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.rule)
    }

    /// Writes, and waits until replicas have confirmed. `what` describes the written items for an error.
    pub(crate) async fn write<T>(
        &self,
        more: &Conn,
        write: impl AsyncFnOnce(&Conn) -> Result<T, Error>,
        what: impl FnOnce() -> String,
    ) -> Result<T, Error> {
        let conn = self.conn(more).await?;
        let written = async {
            let answer = write(&conn).await?;
            Ok((answer, self.replicas(&conn).await?))
        };
        let WaitReplicas { replicas, timeout } = self.rule;
        match written.await {
            Ok((answer, confirmed)) if confirmed >= replicas => Ok(answer),
            Ok((_, confirmed)) => Err(Error::NotReplicated {
                what: what(),
                confirmed,
                wanted: replicas,
                timeout,
            }),
            Err(error) => {
                // The connection may be broken, or lead to a server that is no longer the master.
                *self.slot() = None;
                Err(error)
            }
        }
    }

    async fn conn(&self, more: &Conn) -> Result<Conn, Error> {
        let kept = self.slot().clone();
        if let Some(conn) = kept {
            return Ok(conn);
        }
        let made = more.dedicated().await.map_err(failed)?;
        *self.slot() = Some(made.clone());
        Ok(made)
    }

    /// Returns the number of replicas that have all writes of the connection.
    async fn replicas(&self, conn: &Conn) -> Result<u32, Error> {
        let WaitReplicas { replicas, timeout } = self.rule;
        let mut cmd = redis::cmd("WAIT");
        // A timeout of 0 would mean no limit.
        cmd.arg(replicas)
            .arg(timeout.as_millis().max(1).to_string());
        let conn = &mut conn.clone();
        tokio::time::timeout(timeout + GRACE, cmd.query_async(conn))
            .await
            .unwrap_or_else(|_| Err(timed_out()))
            .map_err(failed)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Conn>> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(source: redis::RedisError) -> Error {
    let verb = "enqueue";
    Error::Call { verb, source }
}
