//! Replies of foreign workers to jobs of Meshwork's clients. Foreign workers set no time to live, and a client that
//! does not wait leaves the reply.

use meshwork_model::job::field;
use meshwork_model::name::JobId;
use redis::{RedisResult, Value};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::REPLY_TTL_MS;
use crate::verb::inspect::jobs::failed;

impl Broker {
    /// Returns the job of a reply list; `None` for other keys.
    pub(crate) fn reply_of(&self, key: &str) -> Option<JobId> {
        let prefixes = [self.keys.reply_prefix(), self.keys.legacy_reply_prefix()];
        let id = prefixes.iter().find_map(|prefix| key.strip_prefix(prefix));
        id.map(|id| JobId::foreign(id.to_owned()))
    }

    /// Sets the usual time to live for replies without one, if a Meshwork client submitted the job. Replies to
    /// foreign clients are not changed.
    pub(crate) async fn end_replies(&self, replies: &[(String, JobId)]) -> Result<(), Error> {
        if replies.is_empty() {
            return Ok(());
        }
        let conn = &mut self.conn.clone();
        let mut look = redis::pipe();
        look.ignore_errors();
        for (list, id) in replies {
            look.cmd("PTTL").arg(list);
            let key = self.keys.job_hash_key(id);
            look.cmd("HEXISTS").arg(key).arg(field::REPLY);
        }
        let seen: Vec<RedisResult<i64>> = look.query_async(conn).await.map_err(failed)?;
        let endless = |pair: &[RedisResult<i64>]| matches!(pair, [Ok(-1), Ok(1)]);
        let endless = replies
            .iter()
            .zip(seen.chunks_exact(2))
            .filter(|(_, pair)| endless(pair));
        let mut end = redis::pipe();
        end.ignore_errors();
        for ((list, _), _) in endless {
            // A Meshwork worker may have replied since.
            end.cmd("PEXPIRE").arg(list).arg(REPLY_TTL_MS).arg("NX");
        }
        if end.is_empty() {
            return Ok(());
        }
        let ended: Result<Vec<RedisResult<Value>>, _> = end.query_async(conn).await;
        ended.map(drop).map_err(failed)
    }
}
