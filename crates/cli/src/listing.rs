//! The first jobs of all in an order, with at most the requested number in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use meshwork::view::JobSummary;
use meshwork::{Client, JobFilter};
use meshwork_model::job::Job;
use meshwork_model::state::Status;
use meshwork_model::time;
use meshwork_ops::walk::{Source, Walk};

use crate::error::CommandError;
use crate::out::Progress;

/// Position of a job in the list: the time of its creation, as in its record, and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    created_at: String,
    /// Length of the id, so that `j.9` comes before `j.10` at the same time.
    length: usize,
    id: String,
}

impl Cursor {
    fn of(created_at: &str, id: &str) -> Self {
        Self {
            created_at: created_at.to_owned(),
            length: id.len(),
            id: id.to_owned(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.created_at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').filter(|(_, id)| !id.is_empty());
        let (created_at, id) = parts
            .ok_or("it is no cursor: give the word that `job list` names where there are more")?;
        Ok(Self {
            created_at: created_at.to_owned(),
            length: id.len(),
            id: id.to_owned(),
        })
    }
}

/// Rank of a job by its end and its last start, in milliseconds since 1970: jobs without one come last, and the newest comes
/// first among equal ranks.
pub(crate) type Rank = fn(Option<u64>, Option<u64>) -> Option<u64>;

/// A job that can be ordered.
pub(crate) trait Ranked {
    /// Returns its position.
    fn cursor(&self) -> Cursor;

    /// Returns its rank.
    fn rank(&self, rank: Rank) -> Option<u64>;
}

impl Ranked for Job {
    fn cursor(&self) -> Cursor {
        Cursor::of(&self.created_at, &self.id)
    }

    fn rank(&self, rank: Rank) -> Option<u64> {
        let is_ended = self.status().is_some_and(Status::is_final);
        let ended = time::parse_iso(&self.updated_at).filter(|_| is_ended);
        rank(ended, self.started_ms)
    }
}

impl Ranked for JobSummary<'_> {
    fn cursor(&self) -> Cursor {
        Cursor::of(&self.about.created_at, &self.id)
    }

    fn rank(&self, rank: Rank) -> Option<u64> {
        let at = |text: Option<&str>| text.and_then(time::parse_iso);
        let about = &self.about;
        rank(
            at(about.ended_at.as_deref()),
            at(about.started_at.as_deref()),
        )
    }
}

/// Jobs that match a filter, those of the highest rank first.
pub(crate) struct First<J> {
    jobs: BTreeMap<(Option<u64>, Cursor), J>,
    /// A page may repeat a job, whose rank may have changed.
    ranks: BTreeMap<Cursor, Option<u64>>,
    rank: Rank,
    limit: usize,
    after: Option<Cursor>,
    /// True if there are more.
    cut: bool,
}

impl<J: Ranked> First<J> {
    /// Keeps up to `limit` jobs; with a cursor, only those after it.
    pub(crate) fn new((rank, limit): (Rank, usize), after: Option<Cursor>) -> Self {
        Self {
            jobs: BTreeMap::new(),
            ranks: BTreeMap::new(),
            rank,
            limit,
            after,
            cut: false,
        }
    }

    /// Adds a job.
    pub(crate) fn add(&mut self, job: J) {
        let place = job.cursor();
        if self.after.as_ref().is_some_and(|after| place >= *after) {
            return;
        }
        let rank = job.rank(self.rank);
        if let Some(before) = self.ranks.insert(place.clone(), rank) {
            self.jobs.remove(&(before, place.clone()));
        }
        self.jobs.insert((rank, place), job);
        if self.jobs.len() > self.limit {
            let last = self.jobs.pop_first();
            last.and_then(|((_, place), _)| self.ranks.remove(&place));
            self.cut = true;
        }
    }

    /// Returns true if there are more.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the cursor of the next part of a list by creation, if there are more.
    pub(crate) fn next(&self) -> Option<&Cursor> {
        let last = self.jobs.first_key_value().filter(|_| self.cut);
        last.map(|((_, place), _)| place)
    }

    /// Returns the jobs in order.
    pub(crate) fn into_jobs(self) -> Vec<J> {
        self.jobs.into_values().rev().collect()
    }
}

impl First<Job> {
    /// Scans all jobs of a store, page by page. Returns false if a text search has reached its limit.
    pub(crate) async fn scan(
        &mut self,
        client: &Client,
        filter: &JobFilter,
    ) -> Result<bool, CommandError> {
        let mut walk = Walk::new(client, filter, Source::Jobs);
        let mut progress = Progress::scan();
        while let Some(page) = walk.next().await? {
            page.into_iter().for_each(|job| self.add(job));
            progress.show(walk.looked_at);
            if walk.is_text_bound() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
