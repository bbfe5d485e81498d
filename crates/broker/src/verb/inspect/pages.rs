//! pages: reads jobs of a list or a sorted set page by page, with a bounded number of commands. Changes nothing.

use meshwork_macros::boxed;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::{MAX_ITEMS, at_most, text};

/// Number of attempts to find a position while entries change.
const TRIES: usize = 8;

/// A sorted set of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSet {
    /// Running jobs, by the end of their lease.
    Running,
    /// Delayed jobs, by due time.
    Delayed,
    /// Ended jobs without dead letters, by the time of their end.
    Ended,
    /// Dead letters, by the time of their failure.
    Dead,
}

/// An entry of a sorted set, which is also a position in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetEntry {
    /// Time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Id of the job.
    pub id: String,
}

/// A page of a sorted set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetPage {
    /// The entries, in order.
    pub entries: Vec<SetEntry>,
    /// True if there are no further entries.
    pub last: bool,
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// Number of entries that are claimed before it.
    pub index: u64,
    /// Id of the job.
    pub id: String,
}

/// The place of a job in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePosition {
    /// Its list.
    pub queue: String,
    /// Number of jobs before it in that list; at least this many if not `exact`.
    pub ahead: u64,
    /// False if the job is behind the part of the list that was searched.
    pub exact: bool,
    /// Number of waiting jobs of higher priorities.
    pub higher: u64,
}

/// Number of entries of a list that are searched for a job, from the end that is claimed first.
pub const MAX_POSITION: u64 = 10_000;

impl Broker {
    fn set_key(&self, set: JobSet) -> String {
        match set {
            JobSet::Running => self.keys.lease(),
            JobSet::Delayed => self.keys.delayed(),
            JobSet::Ended => self.keys.ended(),
            JobSet::Dead => self.keys.dead(),
        }
    }

    /// Returns the number of entries of a sorted set.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn set_length(&self, set: JobSet) -> Result<u64, Error> {
        let count = redis::cmd("ZCARD").arg(self.set_key(set)).to_owned();
        self.ask("pages", &count).await
    }

    /// Returns up to `count` entries of a sorted set after a position: the earliest first, or the latest first. An entry
    /// that is there throughout all pages is returned, at least once.
    ///
    /// # Errors
    /// `count` exceeds [`MAX_ITEMS`], or the server refuses a call.
    #[boxed]
    pub async fn set_page(
        &self,
        set: JobSet,
        after: Option<&SetEntry>,
        latest_first: bool,
        count: usize,
    ) -> Result<SetPage, Error> {
        at_most("pages", MAX_ITEMS, count)?;
        if count == 0 {
            return Ok(SetPage::default());
        }
        let (key, count) = (self.set_key(set), count as i64);
        let range = match (self.place(&key, after).await?, latest_first) {
            (None, false) => (0, count - 1),
            (None, true) => (-count, -1),
            (Some((before, there)), false) => {
                let from = before + i64::from(there);
                (from, from + count - 1)
            }
            (Some((0, _)), true) => {
                return Ok(SetPage {
                    last: true,
                    ..SetPage::default()
                });
            }
            (Some((before, _)), true) => ((before - count).max(0), before - 1),
        };
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(&key).arg(range.0).arg(range.1).arg("WITHSCORES");
        let entries: Vec<(Vec<u8>, f64)> = self.ask("pages", &cmd).await?;
        let last = (entries.len() as i64) < count;
        let entry = |(id, score): (Vec<u8>, f64)| SetEntry {
            at_ms: score as u64,
            id: text(id),
        };
        let mut entries: Vec<_> = entries.into_iter().map(entry).collect();
        if latest_first {
            entries.reverse();
        }
        // Entries may have moved since the position was found.
        entries.retain(|entry| {
            after.is_none_or(|after| match latest_first {
                true => entry < after,
                false => entry > after,
            })
        });
        Ok(SetPage { entries, last })
    }

    /// Returns the number of entries before a position, and whether there is an entry at it. `None` without a position,
    /// and if it cannot be found since entries change: then the reader begins again.
    async fn place(&self, key: &str, at: Option<&SetEntry>) -> Result<Option<(i64, bool)>, Error> {
        let Some(at) = at else {
            return Ok(None);
        };
        let mut pipe = redis::pipe();
        pipe.cmd("ZSCORE").arg(key).arg(&at.id);
        pipe.cmd("ZRANK").arg(key).arg(&at.id);
        let (score, rank): (Option<f64>, Option<i64>) = self.ask_all("inspect", &pipe).await?;
        if let (Some(score), Some(rank)) = (score, rank)
            && score as u64 == at.at_ms
        {
            return Ok(Some((rank, true)));
        }
        // The entry is gone or has moved: entries of the same time are ordered by id.
        let first = self.first_rank(key, at.at_ms.to_string()).await?;
        let next = self.first_rank(key, format!("({}", at.at_ms)).await?;
        let (Some(mut low), Some(mut high)) = (first, next) else {
            return Ok(None);
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(key).arg(middle).arg(middle);
            let ids: Vec<Vec<u8>> = self.ask("pages", &cmd).await?;
            match ids.into_iter().next().map(text) {
                Some(id) if id < at.id => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(Some((low, false)))
    }

    /// Returns the rank of the first entry from a score on; the number of all entries if there is none.
    async fn first_rank(&self, key: &str, from: String) -> Result<Option<i64>, Error> {
        for _ in 0..TRIES {
            let mut cmd = redis::cmd("ZRANGEBYSCORE");
            cmd.arg(key).arg(&from).arg("+inf");
            cmd.arg("LIMIT").arg(0).arg(1);
            let ids: Vec<Vec<u8>> = self.ask("pages", &cmd).await?;
            let Some(id) = ids.into_iter().next() else {
                let count = redis::cmd("ZCARD").arg(key).to_owned();
                return Ok(Some(self.ask("pages", &count).await?));
            };
            let rank = redis::cmd("ZRANK").arg(key).arg(id).to_owned();
            if let Some(rank) = self.ask::<Option<i64>>("pages", &rank).await? {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Returns up to `count` entries of a queue's list in the order of claims, after an entry of an earlier page. If that
    /// entry is gone, the page begins at the first entry of the list, since those before it were claimed as well.
    ///
    /// # Errors
    /// `count` exceeds [`MAX_ITEMS`], or the server refuses a call.
    #[boxed]
    pub async fn list_page(
        &self,
        list: &str,
        after: Option<&ListEntry>,
        count: usize,
    ) -> Result<Vec<ListEntry>, Error> {
        let skip = match after {
            None => 0,
            Some(after) => {
                // Released jobs come before others.
                let most = after.index.saturating_add(1 + MAX_ITEMS as u64);
                let (_, ahead) = self.find_in_list(list, &after.id, most).await?;
                ahead.map_or(0, |ahead| ahead + 1)
            }
        };
        let ids = self.waiting_ids(list, skip as usize, count).await?;
        let entry = |(at, id): (usize, JobId)| ListEntry {
            index: skip + at as u64,
            id: id.to_string(),
        };
        Ok(ids.into_iter().enumerate().map(entry).collect())
    }

    /// Returns the length of a list, and the number of entries before an id among the first `most` in the order of
    /// claims.
    async fn find_in_list(
        &self,
        list: &str,
        id: &str,
        most: u64,
    ) -> Result<(u64, Option<u64>), Error> {
        let mut pipe = redis::pipe();
        pipe.cmd("LLEN").arg(list);
        // Ids are claimed from the end.
        pipe.cmd("LPOS").arg(list).arg(id);
        pipe.arg("RANK").arg(-1).arg("MAXLEN").arg(most);
        let (length, at): (u64, Option<u64>) = self.ask_all("inspect", &pipe).await?;
        let ahead = at.map(|at| length.saturating_sub(at + 1));
        Ok((length, ahead))
    }

    /// Returns the place of a job in a list of a queue; `None` if it is not in the list. The number of commands does not
    /// depend on the number of jobs: only the first [`MAX_POSITION`] entries are searched.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn position(&self, list: &str, id: &JobId) -> Result<Option<QueuePosition>, Error> {
        let found = self.find_in_list(list, id.as_str(), MAX_POSITION).await?;
        let (ahead, exact) = match found {
            (_, Some(ahead)) => (ahead, true),
            (length, None) if length > MAX_POSITION => (MAX_POSITION, false),
            (_, None) => return Ok(None),
        };
        let lists = self.lists_by_priority(list);
        let before = lists.iter().take_while(|of| *of != list);
        let mut higher = 0;
        for list in before {
            higher += self.list_length(list).await? as u64;
        }
        Ok(Some(QueuePosition {
            queue: list.to_owned(),
            ahead,
            exact,
            higher,
        }))
    }

    /// Returns all lists of a queue in the order in which workers claim from them.
    #[must_use]
    pub fn lists_by_priority(&self, queue: &str) -> Vec<String> {
        let base = JobKeys::without_priority(queue);
        let of = |priority| JobKeys::work_queue_priority(base, priority);
        vec![
            of(Priority::High),
            base.to_owned(),
            of(Priority::Normal),
            of(Priority::Low),
        ]
    }
}
