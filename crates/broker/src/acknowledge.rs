//! Durable acknowledgement: what was enqueued counts as accepted only when replicas have it, so that a
//! failover does not lose it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::conn::Conn;
use crate::error::timed_out;

/// How many replicas must have what is enqueued, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledge {
    /// How many.
    pub replicas: u32,
    /// How long; in whole milliseconds.
    pub timeout: Duration,
}

/// Past the time that the server was asked to wait, how long its answer may take.
const GRACE: Duration = Duration::from_secs(2);

/// The rule and a connection to carry it out. The server confirms what was written over the same connection,
/// so this one does not come back by itself: a new one would confirm what it never wrote. Nothing else goes
/// over it, since each confirmation holds up what follows.
#[derive(Debug, Clone)]
pub(crate) struct Confirmed {
    rule: Acknowledge,
    conn: Arc<Mutex<Option<Conn>>>,
}

impl Confirmed {
    pub(crate) fn new(rule: Acknowledge) -> Self {
        let conn = Arc::default();
        Self { rule, conn }
    }

    /// Writes, and waits until replicas have it. `what` says for an error what was written.
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
        let Acknowledge { replicas, timeout } = self.rule;
        match written.await {
            Ok((answer, confirmed)) if confirmed >= replicas => Ok(answer),
            Ok((_, confirmed)) => Err(Error::NotReplicated {
                what: what(),
                confirmed,
                wanted: replicas,
                timeout,
            }),
            Err(error) => {
                // It may be broken, or lead to a server that is no master any more.
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

    /// How many replicas have all that was written over the connection.
    async fn replicas(&self, conn: &Conn) -> Result<u32, Error> {
        let Acknowledge { replicas, timeout } = self.rule;
        let mut cmd = redis::cmd("WAIT");
        // A time of 0 would be for ever.
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
