//! prefetch: finds ids in prefetch lists of unknown workers.

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{SCAN_COUNT, failed, glob_literal, texts};
use meshwork_macros::boxed;

/// A time long ago, as the score of a dead worker.
const LONG_AGO: u8 = 1;

/// The result of a part of the search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnregisteredPrefetch {
    /// Number of prefetch lists that were not registered.
    pub lists: usize,
    /// Cursor of the next part; 0 at the end.
    pub next: u64,
}

impl Broker {
    /// Searches a part of all keys for prefetch lists that are not registered. The blocked call of a process that
    /// hung for very long can end in such a list. It is registered as that of a dead worker, so that
    /// [`Broker::reclaim`] requeues the ids. Begin at 0 and continue with `next`.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn scan_prefetch(&self, from: u64) -> Result<UnregisteredPrefetch, Error> {
        let prefix = self.keys.prefetch_prefix();
        let mut scan = redis::cmd("SCAN");
        scan.arg(from)
            .arg("MATCH")
            .arg(format!("{}*", glob_literal(&prefix)));
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("list");
        let (next, keys): (u64, Vec<Vec<u8>>) = scan
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let members: Vec<_> = texts(keys)
            .filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned()))
            .collect();
        let lists = self.without_listener(&members).await?;
        Ok(UnregisteredPrefetch { lists, next })
    }

    async fn without_listener(&self, members: &[String]) -> Result<usize, Error> {
        if members.is_empty() {
            return Ok(0);
        }
        let mut add = redis::cmd("ZADD");
        // An existing or concurrent registration is not changed.
        add.arg(self.keys.prefetch_registry()).arg("NX");
        for member in members {
            add.arg(LONG_AGO).arg(member);
        }
        add.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }
}
