//! stranded: find ids that wait for a listener that nobody knows.

use super::inspect::{SCAN_COUNT, failed, glob_literal, texts};
use crate::{Broker, Error};

/// A time long ago, as the score of a listener that is gone.
const LONG_AGO: u8 = 1;

/// What a part of the search found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stranded {
    /// How many feed lists had no listener.
    pub lists: usize,
    /// Where the search goes on; 0 if this was the end.
    pub next: u64,
}

impl Broker {
    /// Looks at a part of all keys for feed lists whose listener is not on the list of listeners: the wait
    /// of a process that hung longer than anybody watched it can end in such a one. It is put on the list
    /// as one that is gone, so that [`Broker::reclaim`] hands the ids back. Begin at 0, go on at `next`.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn stranded(&self, from: u64) -> Result<Stranded, Error> {
        let prefix = self.keys.feed_prefix();
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
        Ok(Stranded { lists, next })
    }

    async fn without_listener(&self, members: &[String]) -> Result<usize, Error> {
        if members.is_empty() {
            return Ok(0);
        }
        let mut add = redis::cmd("ZADD");
        // One that is on the list, or comes onto it meanwhile, stays as it is.
        add.arg(self.keys.feeds()).arg("NX");
        for member in members {
            add.arg(LONG_AGO).arg(member);
        }
        add.query_async(&mut self.conn.clone())
            .await
            .map_err(failed)
    }
}
