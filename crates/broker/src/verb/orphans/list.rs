//! list: returns stale jobs, and changes nothing.

use meshwork_macros::boxed;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use redis::RedisResult;

use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::verb::inspect::jobs::{failed, texts};
use crate::verb::{MAX_ITEMS, at_most};

/// A suspected orphan: an open job on no list, or one that was started without a lease longer ago than its timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleJob {
    /// The job.
    pub id: JobId,
    /// True if the job was started.
    pub started: bool,
    /// Time from which it counts as stale, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Counts the jobs that are stale at `now`. Does without ZCOUNT, which users with older rights may not send.
pub(crate) async fn count_stale(conn: &Conn, keys: &JobKeys, now: u64) -> RedisResult<u64> {
    let conn = &mut conn.clone();
    let mut last = redis::cmd("ZREVRANGEBYSCORE");
    last.arg(keys.stale()).arg(now).arg("-inf");
    last.arg("LIMIT").arg(0).arg(1);
    let last: Vec<Vec<u8>> = last.query_async(conn).await?;
    let Some(last) = last.into_iter().next() else {
        return Ok(0);
    };
    let mut rank = redis::cmd("ZRANK");
    rank.arg(keys.stale()).arg(last);
    let rank: Option<u64> = rank.query_async(conn).await?;
    Ok(rank.map_or(0, |rank| rank + 1))
}

impl Broker {
    /// Returns up to `count` stale jobs, the longest stale first, without the first `from` of them. [`Broker::scan_orphans`]
    /// and [`Broker::check_orphans`] record them: without a worker there are no new ones.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn list_stale(&self, from: usize, count: usize) -> Result<Vec<StaleJob>, Error> {
        at_most("stale", MAX_ITEMS, count)?;
        let now = self.now().await?;
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(self.keys.stale())
            .arg("-inf")
            .arg(now)
            .arg("WITHSCORES");
        range.arg("LIMIT").arg(from).arg(count);
        let found: Vec<(Vec<u8>, f64)> = range
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let job = |(member, since): (Vec<u8>, f64)| {
            let member = texts(vec![member]).next()?;
            let (how, id) = member.split_once(' ')?;
            Some(StaleJob {
                id: JobId::foreign(id.to_owned()),
                started: how == "started",
                since_ms: since as u64,
            })
        };
        Ok(found.into_iter().filter_map(job).collect())
    }
}
