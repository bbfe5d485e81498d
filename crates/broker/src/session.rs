//! A session: a connection, the keys of one protocol, its scripts, the clock and the rule for replicas. The verbs of
//! each protocol are methods of a type that wraps it.

use redis::FromRedisValue;

use crate::clock::Clock;
use crate::conn::Conn;
use crate::error::{Error, keys_of};
use crate::outages::Outages;
use crate::replication::{ReplicatedConn, WaitReplicas};
use crate::script::Named;

/// State that the verbs of every protocol share; cheap to clone. `K` builds the keys.
#[derive(Debug, Clone)]
pub struct Session<K> {
    pub(crate) conn: Conn,
    pub(crate) keys: K,
    pub(crate) scripts: Named,
    pub(crate) clock: Clock,
    /// Rule for replicas; `None`: calls do not wait for replicas.
    pub(crate) confirmed: Option<ReplicatedConn>,
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

    /// Sets the rule for replicas.
    pub(crate) fn acknowledge(&mut self, rule: Option<WaitReplicas>) {
        self.confirmed = rule.map(ReplicatedConn::new);
    }

    /// Loads all scripts to the server, so that their first calls need not send them. This is optional: a call sends
    /// its script if the server does not know it.
    ///
    /// # Errors
    /// The server does not accept them.
    pub async fn load(&self) -> Result<(), Error> {
        self.scripts.load(&self.conn).await
    }

    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &K {
        &self.keys
    }

    /// Returns the connection.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.conn
    }

    /// Returns the number of the connection's database.
    #[must_use]
    pub fn database(&self) -> u32 {
        u32::try_from(redis::aio::ConnectionLike::get_db(&self.conn)).unwrap_or_default()
    }

    /// Returns the failures over this connection and those opened from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        self.conn.outages()
    }

    /// Returns the time of the scripts' clock, in milliseconds since 1970.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn now(&self) -> Result<u64, Error> {
        self.clock.now(&self.conn).await
    }

    /// Sends a command that is not a script. An error names the verb and the keys.
    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        verb: &'static str,
        cmd: &redis::Cmd,
    ) -> Result<T, Error> {
        let answer = cmd.query_async(&mut self.conn.clone()).await;
        answer.map_err(|source| Error::of_keys(verb, &keys_of(cmd), source))
    }

    /// Sends the commands of a pipeline. An error names the keys of the first one that failed.
    pub(crate) async fn ask_all<T: FromRedisValue>(
        &self,
        verb: &'static str,
        pipe: &redis::Pipeline,
    ) -> Result<T, Error> {
        let answer = pipe.query_async(&mut self.conn.clone()).await;
        answer.map_err(|source| Error::of_pipeline(verb, pipe, source))
    }
}

impl<K> Session<K> {
    /// Sends the commands of a pipeline, each of which reads one key. The answer for a key of another type is as of
    /// [`Self::or_nothing`].
    pub(crate) async fn seen_all<T: FromRedisValue + Default>(
        &self,
        verb: &'static str,
        pipe: &mut redis::Pipeline,
    ) -> Result<Vec<T>, Error> {
        pipe.ignore_errors();
        let answers: Vec<redis::RedisResult<T>> = self.ask_all(verb, pipe).await?;
        let of_key = |(answer, cmd): (redis::RedisResult<T>, &redis::Cmd)| {
            self.or_nothing(answer.map_err(|source| Error::of_keys(verb, &keys_of(cmd), source)))
        };
        answers
            .into_iter()
            .zip(pipe.cmd_iter())
            .map(of_key)
            .collect()
    }

    /// Returns nothing in place of the error of a key with another type, and logs it once. For what is only shown: such a
    /// key hides nothing else.
    ///
    /// # Errors
    /// Any other error.
    pub fn or_nothing<T: Default>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        match answer {
            Err(error) if error.is_wrong_type() => {
                self.outages().left_out(&error);
                Ok(T::default())
            }
            answer => answer,
        }
    }
}

impl<K: Clone> Session<K> {
    /// Returns the same session over a separate connection.
    pub(crate) async fn dedicated(&self) -> Result<Self, Error> {
        let conn = self.conn.dedicated().await.map_err(Error::connect)?;
        Ok(Self {
            conn,
            ..self.clone()
        })
    }
}
