//! Discovery by sentinels: they name the master of a service, and another one after a failover.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ErrorKind, RedisError, RedisResult, Value};

use super::super::dial::{Dial, beside};
use super::super::stranger::stranger;
use super::{ASK_TIMEOUT, ask};
use crate::error::is_unknown_command;

/// Description of the error of a sentinel that refuses the credentials. The server's own error has another remedy.
pub(in super::super) const REFUSED: &str = "the sentinel refuses the credentials";

/// The sentinels of one service.
pub(super) struct Sentinel {
    dial: Dial,
    /// At least one sentinel.
    nodes: Vec<ConnectionAddr>,
    service: String,
    /// Index of the sentinel that answered last, which is queried first.
    first: AtomicUsize,
}

impl Sentinel {
    pub(super) fn new(dial: Dial, nodes: Vec<ConnectionAddr>, service: String) -> Self {
        Self {
            dial,
            nodes,
            service,
            first: AtomicUsize::new(0),
        }
    }

    /// Returns the same sentinels for connections to another database.
    pub(super) fn again(&self) -> Self {
        let (dial, nodes, service) = (self.dial.clone(), self.nodes.clone(), self.service.clone());
        Self::new(dial, nodes, service)
    }

    /// Returns the first sentinel.
    pub(super) fn any(&self) -> ConnectionAddr {
        self.nodes[0].clone()
    }

    /// Returns the address of the master, by the first sentinel that knows the service.
    pub(super) async fn locate(&self) -> RedisResult<ConnectionAddr> {
        let first = self.first.load(Ordering::Relaxed);
        let mut failed = None;
        for turn in 0..self.nodes.len() {
            let at = (first + turn) % self.nodes.len();
            match self.ask_one(&self.nodes[at]).await {
                Ok(addr) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(addr);
                }
                Err(error) => {
                    tracing::debug!(sentinel = %self.nodes[at], %error, "no answer");
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| self.unknown()))
    }

    async fn ask_one(&self, node: &ConnectionAddr) -> RedisResult<ConnectionAddr> {
        self.ask_node(node).await.map_err(|error| {
            let login = matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"));
            if login || error.kind() == ErrorKind::AuthenticationFailed {
                return (ErrorKind::AuthenticationFailed, REFUSED, error.to_string()).into();
            }
            if is_unknown_command(&error) {
                return stranger(format!(
                    "{node} is a server and no sentinel: give the addresses of sentinels, usually with port 26379, or write \
                     redis:// for the server itself"
                ));
            }
            error
        })
    }

    async fn ask_node(&self, node: &ConnectionAddr) -> RedisResult<ConnectionAddr> {
        let mut connection = self.dial.connect(node, ASK_TIMEOUT).await?;
        let mut question = redis::cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        let answer: Option<(String, u16)> = ask(&mut connection, &question).await?;
        let (host, port) = answer.ok_or_else(|| self.unknown())?;
        Ok(beside(node, host, port))
    }

    fn unknown(&self) -> RedisError {
        let what = "the sentinels know no service of that name";
        let kind = ErrorKind::MasterNameNotFoundBySentinel;
        (kind, what, self.service.clone()).into()
    }
}

/// Returns an error for a server that is not the master. Sentinels name a new master before its promotion.
pub(super) async fn verify(
    connection: &mut MultiplexedConnection,
    addr: &ConnectionAddr,
) -> RedisResult<()> {
    let role: Vec<Value> = ask(connection, &redis::cmd("ROLE")).await?;
    let role = role.into_iter().next().map(redis::from_redis_value);
    match role.transpose()? {
        Some(role) if role == *"master" => Ok(()),
        role => {
            let role: Option<String> = role;
            let role = role.unwrap_or_default();
            let what = "a failover is under way: the sentinels name a server that is no master";
            Err((ErrorKind::Io, what, format!("{addr} is {role}")).into())
        }
    }
}
