//! A session: a connection, the names of one protocol's keys, its scripts, the clock and the replicas to wait for. The
//! verbs of a protocol are methods of a type of its own over it.

use redis::FromRedisValue;

use crate::acknowledge::{Acknowledge, Confirmed};
use crate::clock::Clock;
use crate::conn::Conn;
use crate::error::{Error, keys_of};
use crate::outages::Outages;
use crate::script::Named;

/// What the verbs of every protocol work with; cheap to clone. `K` has the names of keys.
#[derive(Debug, Clone)]
pub struct Session<K> {
    pub(crate) conn: Conn,
    pub(crate) keys: K,
    pub(crate) scripts: Named,
    pub(crate) clock: Clock,
    /// None: no replica is waited for.
    pub(crate) confirmed: Option<Confirmed>,
}

impl<K> Session<K> {
    pub(crate) fn new(conn: Conn, keys: K, scripts: Named) -> Self {
        Self {
            conn,
            keys,
            scripts,
            clock: Clock::default(),
            confirmed: None,
        }
    }

    /// Waits for replicas as `rule` says.
    pub(crate) fn acknowledge(&mut self, rule: Option<Acknowledge>) {
        self.confirmed = rule.map(Confirmed::new);
    }

    /// Gives all scripts to the server, so that none has to be sent when it is first needed. Not needed for
    /// more than that: a script that the server does not know is sent by the call.
    ///
    /// # Errors
    /// If the server does not take them.
    pub async fn load(&self) -> Result<(), Error> {
        self.scripts.load(&self.conn).await
    }

    /// The names in use.
    #[must_use]
    pub fn keys(&self) -> &K {
        &self.keys
    }

    /// The connection in use.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.conn
    }

    /// The failures over this connection, and those made from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        self.conn.outages()
    }

    /// The time that the scripts go by, in milliseconds since 1970.
    ///
    /// # Errors
    /// If the server does not tell it.
    pub async fn now(&self) -> Result<u64, Error> {
        self.clock.now(&self.conn).await
    }

    /// A command that is no script; an error names the verb and the keys.
    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
    ) -> Result<T, Error> {
        let asked = cmd.query_async(&mut self.conn.clone()).await;
        asked.map_err(|source| Error::of_keys(verb, &keys_of(cmd), source))
    }
}

impl<K: Clone> Session<K> {
    /// The same over a connection of its own.
    pub(crate) async fn dedicated(&self) -> Result<Self, Error> {
        let conn = self.conn.dedicated().await.map_err(Error::connect)?;
        Ok(Self {
            conn,
            ..self.clone()
        })
    }
}
