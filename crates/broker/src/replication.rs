//! Acknowledgement by replicas: enqueued jobs, and changes in contexts, count as stored only after replicas have them, so
//! that a failover does not lose them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::conn::Conn;
use crate::error::Error;
use crate::error::timed_out;

/// The number of replicas that must confirm enqueued jobs and changes in contexts, and the time for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitReplicas {
    /// Number of replicas.
    pub replicas: u32,
    /// Timeout, in whole milliseconds.
    pub timeout: Duration,
}

/// Remedies: of jobs, whose ids are known, and of what gets a number with each call.
const REPEAT: &str = "repeat the call, nothing is stored twice";
const CHECK: &str = "look whether it is there before you repeat the call, which stores another one";

/// Extra time for the server's answer, beyond the time for which it waits.
const GRACE: Duration = Duration::from_secs(2);
/// Greatest number of connections, one for each slot of a cluster. Beyond it, another one is closed.
const MAX_CONNS: usize = 64;

/// The rule and its connections. The server confirms writes of the same connection, so none is reconnected: a
/// new one would confirm writes that it never made. No other calls use them, because each confirmation blocks the calls
/// behind it.
#[derive(Debug, Clone)]
pub(crate) struct ReplicatedConn {
    rule: WaitReplicas,
    /// The connections by slot; `None`: that to the server of the session's own keys.
    conns: Arc<Mutex<HashMap<Option<u16>, Conn>>>,
}

impl ReplicatedConn {
    pub(crate) fn new(rule: WaitReplicas) -> Self {
        let conns = Arc::default();
        Self { rule, conns }
    }

    /// Returns the same rule for another connection.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.rule)
    }

    /// Writes, and waits until replicas have confirmed. `what` describes the written items for an error. What the call
    /// read counts too: replicas have all that the server had then.
    pub(crate) async fn write<T>(
        &self,
        more: &Conn,
        write: impl AsyncFnOnce(&Conn) -> Result<T, Error>,
        what: impl FnOnce() -> String,
    ) -> Result<T, Error> {
        self.write_in(None, more, write, || (what(), REPEAT)).await
    }

    /// Does the same for the key of any slot, and for changes of which a repeated call makes another one.
    pub(crate) async fn write_at<T>(
        &self,
        key: &str,
        more: &Conn,
        write: impl AsyncFnOnce(&Conn) -> Result<T, Error>,
        what: impl FnOnce() -> String,
    ) -> Result<T, Error> {
        let (slot, more) = (more.slot_of(key), more.of_key(key));
        self.write_in(slot, &more, write, || (what(), CHECK)).await
    }

    async fn write_in<T>(
        &self,
        slot: Option<u16>,
        more: &Conn,
        write: impl AsyncFnOnce(&Conn) -> Result<T, Error>,
        what: impl FnOnce() -> (String, &'static str),
    ) -> Result<T, Error> {
        let conn = self.conn(slot, more).await?;
        let written = async {
            let answer = write(&conn).await?;
            Ok((answer, self.replicas(&conn).await?))
        };
        let WaitReplicas { replicas, timeout } = self.rule;
        match written.await {
            Ok((answer, confirmed)) if confirmed >= replicas => Ok(answer),
            Ok((_, confirmed)) => {
                let (what, remedy) = what();
                Err(Error::NotReplicated {
                    what,
                    remedy,
                    confirmed,
                    wanted: replicas,
                    timeout,
                })
            }
            Err(error) => {
                // The connection may be broken, or lead to a server that is no longer the master.
                self.conns().remove(&slot);
                Err(error)
            }
        }
    }

    async fn conn(&self, slot: Option<u16>, more: &Conn) -> Result<Conn, Error> {
        let kept = self.conns().get(&slot).cloned();
        if let Some(conn) = kept {
            return Ok(conn);
        }
        let made = more.dedicated().await.map_err(failed)?;
        let mut conns = self.conns();
        if conns.len() >= MAX_CONNS
            && let Some(other) = conns.keys().next().copied()
        {
            conns.remove(&other);
        }
        conns.insert(slot, made.clone());
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

    fn conns(&self) -> MutexGuard<'_, HashMap<Option<u16>, Conn>> {
        self.conns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(source: redis::RedisError) -> Error {
    let verb = "wait for replicas";
    Error::Call { verb, source }
}
