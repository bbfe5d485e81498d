//! A walk over all jobs or dead letters that match a filter, page by page.

use meshwork::{Client, DeadCursor, JobFilter, MAX_TEXT_SCAN};
use meshwork_broker::MAX_ITEMS;
use meshwork_model::job::Job;

use crate::error::OpError;

/// Kind of the jobs: all, or dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// All jobs, in no order.
    Jobs,
    /// Dead letters, the newest first.
    DeadLetters,
}

/// A walk.
#[derive(Debug)]
pub struct Walk<'a> {
    client: &'a Client,
    filter: &'a JobFilter,
    from: Option<From>,
    /// Number of jobs that were compared with the filter, about.
    pub looked_at: usize,
}

#[derive(Debug)]
enum From {
    Job(u64),
    Dead(Option<DeadCursor>),
}

impl<'a> Walk<'a> {
    /// Begins.
    #[must_use]
    pub fn new(client: &'a Client, filter: &'a JobFilter, source: Source) -> Self {
        let from = Some(match source {
            Source::Jobs => From::Job(0),
            Source::DeadLetters => From::Dead(None),
        });
        Self {
            client,
            filter,
            from,
            looked_at: 0,
        }
    }

    /// Returns the next page; none at the end. A page may be empty, and may repeat a job.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn next(&mut self) -> Result<Option<Vec<Job>>, OpError> {
        Ok(match self.from.take() {
            None => None,
            Some(From::Job(from)) => {
                let page = self.client.find(self.filter, from).await?;
                self.from = (page.next != 0).then_some(From::Job(page.next));
                self.looked_at += page.looked_at;
                Some(page.jobs)
            }
            Some(From::Dead(from)) => {
                let page = self.client.dead_letters(self.filter, from.as_ref()).await?;
                self.from = page.next.map(|next| From::Dead(Some(next)));
                self.looked_at += MAX_ITEMS;
                Some(page.letters.into_iter().map(|letter| letter.job).collect())
            }
        })
    }

    /// Returns true if a text search has reached its limit of scanned jobs.
    #[must_use]
    pub fn is_text_bound(&self) -> bool {
        self.filter.text.is_some() && self.from.is_some() && self.looked_at >= MAX_TEXT_SCAN
    }
}
