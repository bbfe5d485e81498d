//! Newest jobs of all, with at most the requested number in memory.

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

/// Newest jobs that match a filter, the newest first.
pub(crate) struct Newest {
    pub(crate) jobs: Vec<Job>,
    /// True if there are more.
    cut: bool,
    /// True if a text search has reached its limit.
    pub(crate) incomplete: bool,
}

impl Newest {
    /// Scans all jobs, page by page. With a cursor, only those after it.
    pub(crate) async fn find(
        client: &Client,
        filter: &JobFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<Self, CommandError> {
        // Ordered by position: a page may repeat a job.
        let (mut newest, mut cut, mut incomplete) = (BTreeMap::new(), false, false);
        let mut walk = Walk::new(client, filter, Source::Jobs);
        let mut progress = Progress::scan();
        while let Some(page) = walk.next().await? {
            for job in page {
                let place = Cursor::of(&job);
                if after.as_ref().is_some_and(|after| place >= *after) {
                    continue;
                }
                newest.insert(place, job);
                if newest.len() > limit {
                    newest.pop_first();
                    cut = true;
                }
            }
            progress.show(walk.looked_at);
            if walk.is_text_bound() {
                incomplete = true;
                break;
            }
        }
        let jobs = newest.into_values().rev().collect();
        Ok(Self {
            jobs,
            cut,
            incomplete,
        })
    }

    /// Returns the cursor of the next part, if there are more.
    pub(crate) fn next(&self) -> Option<Cursor> {
        self.jobs.last().filter(|_| self.cut).map(Cursor::of)
    }
}
