//! The first jobs of all in an order, with at most the requested number in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use meshwork::{Client, JobFilter};
use meshwork_model::job::Job;
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
    fn of(job: &Job) -> Self {
        Self {
            created_at: job.created_at.clone(),
            length: job.id.len(),
            id: job.id.clone(),
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

/// Rank of a job: jobs without one come last, and the newest comes first among equal ranks.
pub(crate) type Rank = fn(&Job) -> Option<u64>;

/// Jobs that match a filter, those of the highest rank first.
pub(crate) struct First {
    pub(crate) jobs: Vec<Job>,
    /// True if there are more.
    cut: bool,
    /// True if a text search has reached its limit.
    pub(crate) incomplete: bool,
}

impl First {
    /// Scans all jobs, page by page. With a cursor, only those after it.
    pub(crate) async fn find(
        client: &Client,
        filter: &JobFilter,
        (rank, limit): (Rank, usize),
        after: Option<Cursor>,
    ) -> Result<Self, CommandError> {
        // A page may repeat a job, whose rank may have changed.
        let (mut first, mut ranks) = (BTreeMap::new(), BTreeMap::new());
        let (mut cut, mut incomplete) = (false, false);
        let mut walk = Walk::new(client, filter, Source::Jobs);
        let mut progress = Progress::scan();
        while let Some(page) = walk.next().await? {
            for job in page {
                let place = Cursor::of(&job);
                if after.as_ref().is_some_and(|after| place >= *after) {
                    continue;
                }
                let rank = rank(&job);
                if let Some(before) = ranks.insert(place.clone(), rank) {
                    first.remove(&(before, place.clone()));
                }
                first.insert((rank, place), job);
                if first.len() > limit {
                    let last = first.pop_first();
                    last.and_then(|((_, place), _)| ranks.remove(&place));
                    cut = true;
                }
            }
            progress.show(walk.looked_at);
            if walk.is_text_bound() {
                incomplete = true;
                break;
            }
        }
        let jobs = first.into_values().rev().collect();
        Ok(Self {
            jobs,
            cut,
            incomplete,
        })
    }

    /// Returns true if there are more.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the cursor of the next part of a list by creation, if there are more.
    pub(crate) fn next(&self) -> Option<Cursor> {
        self.jobs.last().filter(|_| self.cut).map(Cursor::of)
    }
}
