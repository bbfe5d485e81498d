//! Resumable work (`run --each`): a name for the arguments, and the seed of its job ids.

use crate::broker::Broker;
use crate::error::Error;
use meshwork_macros::boxed;

/// Time for which unfinished work is remembered, in seconds (7 days): as long as the greatest timeout.
const SERIES_TTL: u64 = 7 * 24 * 3600;

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "series",
        source,
    }
}

impl Broker {
    /// Returns the seed of the work that `digest` names: the stored one, or `fresh`. The same arguments get the same
    /// seed and job ids, so that nothing is enqueued twice.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn begin_series(&self, digest: &str, fresh: &str) -> Result<String, Error> {
        let key = self.keys.each(digest);
        let conn = &mut self.conn.clone();
        let mut set = redis::cmd("SET");
        set.arg(&key)
            .arg(fresh)
            .arg("NX")
            .arg("GET")
            .arg("EX")
            .arg(SERIES_TTL);
        let there: Option<String> = set.query_async(conn).await.map_err(failed)?;
        Ok(there.unwrap_or_else(|| fresh.to_owned()))
    }

    /// Returns the seed of the work that `digest` names, if it is unfinished.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn series(&self, digest: &str) -> Result<Option<String>, Error> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.each(digest));
        get.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }

    /// Deletes the seed: the same arguments are new work from now on.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn end_series(&self, digest: &str) -> Result<(), Error> {
        let mut del = redis::cmd("DEL");
        del.arg(self.keys.each(digest));
        del.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }
}
