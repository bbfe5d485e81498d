//! Work that can be resumed (`run --each`): a name for what was asked for, and the seed of its job ids.

use crate::{Broker, Error};

/// How long unfinished work is remembered, in seconds (7 days): as long as the longest timeout.
const EACH_TTL: u64 = 7 * 24 * 3600;

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "each",
        source,
    }
}

impl Broker {
    /// The seed of the work that `digest` names: the one it has already, or `fresh`. Whoever asks for the
    /// same thing again gets the same seed, makes the same job ids from it, and so enqueues nothing twice.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn begin_each(&self, digest: &str, fresh: &str) -> Result<String, Error> {
        let key = self.keys.each(digest);
        let conn = &mut self.conn.clone();
        let mut set = redis::cmd("SET");
        set.arg(&key)
            .arg(fresh)
            .arg("NX")
            .arg("GET")
            .arg("EX")
            .arg(EACH_TTL);
        let there: Option<String> = set.query_async(conn).await.map_err(failed)?;
        Ok(there.unwrap_or_else(|| fresh.to_owned()))
    }

    /// The seed of the work that `digest` names, if it was begun and not ended.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn each(&self, digest: &str) -> Result<Option<String>, Error> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.each(digest));
        get.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }

    /// Forgets it: the same request is a new one from now on.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn end_each(&self, digest: &str) -> Result<(), Error> {
        let mut del = redis::cmd("DEL");
        del.arg(self.keys.each(digest));
        del.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }
}
