//! The shared connection as a transport, with those for other slots of its cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use tokio::runtime::Handle;

use super::{Remote, State};
use crate::conn::locate::{Found, Locator, SlotMap};
use crate::conn::socket::Dedicate;
use crate::conn::{Changed, Conn, Subscriber, Transport, is_read_only};
use crate::error::passes;

/// The connection, and those for other slots of its cluster, which differ in the node.
pub(super) struct Shared {
    remote: Arc<Remote>,
    /// Connections by slot; empty outside of clusters.
    slots: Arc<Mutex<HashMap<u16, Arc<Remote>>>>,
}

impl Shared {
    pub(super) fn conn(locator: Locator, found: Found) -> Conn {
        let slot = locator.slot();
        let remote = Remote::new(locator, Handle::current(), found.addr);
        remote.link.send_modify(|link| {
            link.opened = Some(found.opened);
            link.state = State::Up(found.connection);
        });
        let remote = Arc::new(remote);
        let slots = slot.map(|slot| (slot, Arc::clone(&remote)));
        Conn::new(Self {
            remote,
            slots: Arc::new(Mutex::new(slots.into_iter().collect())),
        })
    }

    /// Returns the connection for the slot of `key`; `None` outside of clusters. The node is found at its first call.
    fn of_slot(&self, key: &str) -> Option<Arc<Remote>> {
        let (slot, locator) = self.remote.locator.of_key(key)?;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = slots.entry(slot).or_insert_with(|| {
            let (runtime, addr) = (self.remote.runtime.clone(), locator.any());
            let remote = Arc::new(Remote::new(locator, runtime, addr));
            let found = Arc::clone(&remote).find(None, true);
            remote.runtime.spawn(found);
            remote
        });
        Some(Arc::clone(remote))
    }
}

impl Transport for Shared {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let send = move |mut connection: MultiplexedConnection| async move {
            match connection.send_packed_command(cmd).await? {
                Value::ServerError(error) => Err(error.into()),
                answer => Ok(answer),
            }
        };
        Box::pin(self.remote.answered(true, send))
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let repeatable = pipeline.cmd_iter().all(is_read_only);
        let send = move |connection| all_or_none(connection, pipeline, offset, count);
        Box::pin(self.remote.answered(repeatable, send))
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Arc::clone(&self.remote).dedicated()
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Arc::clone(&self.remote).subscriber()
    }

    fn tracking(&self, changed: Changed) -> BoxFuture<'_, RedisResult<Option<(Conn, String)>>> {
        Box::pin(Arc::clone(&self.remote).tracking(changed))
    }

    fn in_database(&self, database: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let locator = self.remote.locator.in_database(database);
            let alone = (
                redis::ErrorKind::InvalidClientConfig,
                "a cluster has only database 0",
            );
            let locator = locator.ok_or(alone)?;
            let found = locator.shared(None, true).await?;
            Ok(Self::conn(locator, found))
        })
    }

    fn db(&self) -> i64 {
        self.remote.locator.db()
    }

    fn is_connected(&self) -> bool {
        self.remote.is_connected()
    }

    fn of_key(&self, key: &str) -> Option<Conn> {
        let (remote, slots) = (self.of_slot(key)?, Arc::clone(&self.slots));
        Some(Conn::new(Self { remote, slots }))
    }

    fn slots(&self) -> BoxFuture<'_, RedisResult<Option<SlotMap>>> {
        Box::pin(self.remote.locator.slot_map())
    }

    fn is_cluster(&self) -> bool {
        self.remote.locator.slot().is_some()
    }
}

/// Some verbs ignore errors of single keys. This function returns an error that the server has for all keys alike,
/// such as during a failover.
async fn all_or_none(
    mut connection: MultiplexedConnection,
    pipeline: &Pipeline,
    offset: usize,
    count: usize,
) -> RedisResult<Vec<Value>> {
    let sent = connection.send_packed_commands(pipeline, offset, count);
    let answers = sent.await?;
    let refused = answers.iter().find_map(|answer| match answer {
        Value::ServerError(error) => Some(RedisError::from(error.clone())),
        _ => None,
    });
    match refused.filter(passes) {
        Some(error) => Err(error),
        None => Ok(answers),
    }
}
