//! The newest jobs among all, with no more of them in memory than are asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use meshwork::model::job::Job;
use meshwork::{Client, JobFilter};

use crate::bulk::{Pages, Source};
use crate::error::CommandError;
use crate::out::Progress;

/// The place in a list at which a job stands: the time of its creation, as its record has it, and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    created_at: String,
    /// Of jobs of one time, `j.9` comes before `j.10`.
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

/// The newest of those that a filter includes, first the newest.
pub(crate) struct Newest {
    pub(crate) jobs: Vec<Job>,
    /// There are more.
    cut: bool,
    /// A search for a text ended at its bound.
    pub(crate) incomplete: bool,
}

impl Newest {
    /// Goes through all jobs, page by page. With a cursor, only those after it.
    pub(crate) async fn find(
        client: &Client,
        filter: &JobFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<Self, CommandError> {
        // By place: a page may bring a job again.
        let (mut newest, mut cut, mut incomplete) = (BTreeMap::new(), false, false);
        let mut pages = Pages::new(client, filter, Source::Jobs);
        let mut progress = Progress::scan();
        while let Some(page) = pages.next().await? {
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
            progress.show(pages.looked_at);
            if pages.is_text_bound() {
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

    /// The cursor of the next part, where there are more.
    pub(crate) fn next(&self) -> Option<Cursor> {
        self.jobs.last().filter(|_| self.cut).map(Cursor::of)
    }
}
