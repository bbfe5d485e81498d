//! lost: finds what a set has lost, with the set or alone: ended jobs, dead letters, jobs that wait, batches, backlogs. Notes
//! that queues have settings, whose loss nothing else shows.

use meshwork_model::name::JobId;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::failed;
use crate::verb::migrate::Kept;
use crate::verb::{MAX_ITEMS, Suspect};

/// Field of the scan's state that notes that queues have settings.
const SETTINGS_NOTED: &str = "settings";

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

    /// Returns those of the batches that the set of ended ones lacks.
    pub(super) async fn open_batches(&self, batches: Vec<String>) -> Result<Vec<String>, Error> {
        let mut scores = redis::pipe();
        for batch in &batches {
            scores
                .cmd("ZSCORE")
                .arg(self.keys.batches_ended())
                .arg(batch);
        }
        if batches.is_empty() {
            return Ok(batches);
        }
        let ended: Vec<Option<f64>> = self.ask_all("sweep", &scores).await?;
        let open = batches.into_iter().zip(ended);
        let open = open.filter(|(_, ended)| ended.is_none());
        Ok(open.map(|(batch, _)| batch).collect())
    }

    /// Adds names to a set by the time of their next check if it has lost them. The check removes those that need none.
    pub(super) async fn enter(&self, set: String, names: &[String], now: u64) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        let mut add = redis::cmd("ZADD");
        add.arg(set).arg("NX");
        for name in names {
            add.arg(now).arg(name);
        }
        self.ask("sweep", &add).await
    }

    /// Notes that queues have settings, so that `doctor` sees their loss. The field `kept` keeps the hash when the last setting
    /// is removed.
    pub(super) async fn note_settings(&self) -> Result<(), Error> {
        let config = self.keys.config();
        let many: u64 = self.ask("sweep", redis::cmd("HLEN").arg(&config)).await?;
        if many == 0 {
            return Ok(());
        }
        let kept = redis::cmd("HSETNX")
            .arg(&config)
            .arg("kept")
            .arg(1)
            .to_owned();
        self.ask::<u64>("sweep", &kept).await?;
        let mut note = redis::cmd("HSET");
        note.arg(self.keys.walk()).arg(SETTINGS_NOTED).arg(1);
        self.ask::<u64>("sweep", &note).await.map(drop)
    }

    /// Returns whether queues had settings that are gone now.
    pub(crate) async fn has_lost_settings(&self) -> Result<bool, Error> {
        let mut noted = redis::cmd("HEXISTS");
        noted.arg(self.keys.walk()).arg(SETTINGS_NOTED);
        let exists = redis::cmd("EXISTS").arg(self.keys.config()).to_owned();
        Ok(self.ask("inspect", &noted).await? && !self.ask::<bool>("inspect", &exists).await?)
    }
}
