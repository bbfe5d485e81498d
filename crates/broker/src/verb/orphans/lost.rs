//! lost: finds jobs whose entry in a set is gone, with the set or alone: ended jobs, dead letters, and jobs that wait.

use meshwork_model::name::JobId;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::failed;
use crate::verb::migrate::Kept;
use crate::verb::{MAX_ITEMS, Suspect};

impl Broker {
    /// Puts jobs under watch that the sets of ended, dead and watched jobs lack. Returns their number.
    pub(super) async fn track_lost(&self, kept: &[(JobId, Kept)]) -> Result<usize, Error> {
        if kept.is_empty() {
            return Ok(0);
        }
        let watched = self.keys.watch();
        let ended = [self.keys.ended(), self.keys.dead(), watched.clone()];
        let waiting = [watched];
        let sets = |of: Kept| match of {
            Kept::Ended => ended.as_slice(),
            Kept::Waiting => waiting.as_slice(),
        };
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for (id, of) in kept {
            for set in sets(*of) {
                pipe.cmd("ZSCORE").arg(set).arg(id.as_str());
            }
        }
        let conn = &mut self.conn.clone();
        let found: Vec<RedisResult<Option<f64>>> = pipe.query_async(conn).await.map_err(failed)?;
        let mut found = found.into_iter();
        // A set of another type has no entries, and takes none.
        let lost = kept.iter().filter(|(_, of)| {
            let scores: Vec<_> = found.by_ref().take(sets(*of).len()).collect();
            scores.iter().all(|score| matches!(score, Ok(None)))
        });
        let suspect = |(id, _): &(JobId, Kept)| Suspect {
            id: id.clone(),
            script_type: None,
            queue: None,
        };
        let lost: Vec<_> = lost.map(suspect).collect();
        let mut adopted = 0;
        for chunk in lost.chunks(MAX_ITEMS) {
            adopted += self.track_orphans(chunk).await?;
        }
        Ok(adopted)
    }
}
