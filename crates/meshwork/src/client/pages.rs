//! Pages of jobs by state, from the lists and sorted sets of the store. Each page sends a bounded number of commands,
//! however many jobs are stored.

use meshwork_macros::boxed;
use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use meshwork_broker::{JobSet, ListEntry, MAX_ITEMS, SetEntry};
use meshwork_model::job::Job;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;

use super::Client;
use crate::Error;

/// Least number of entries in each call while a page searches for jobs of one queue.
const WINDOW: usize = 50;
/// Greatest number of entries that one page compares with its queue.
const MAX_COMPARED: usize = MAX_ITEMS;

/// Greatest number of jobs of a page.
pub const MAX_PAGE: usize = MAX_ITEMS;

/// Position after a page. Its text form is opaque.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(At);

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    /// A list of a queue, by its place in the order of claims, and its last entry.
    List(usize, ListEntry),
    /// A sorted set, and the last entry.
    Set(char, SetEntry),
}

/// A text is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no cursor: give the one of the previous page, or none for the first page")]
pub struct InvalidCursor(String);

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number, id) = match &self.0 {
            At::List(list, entry) => (format!("q{list}"), entry.index, &entry.id),
            At::Set(kind, entry) => (kind.to_string(), entry.at_ms, &entry.id),
        };
        let id = BASE64URL_NOPAD.encode(id.as_bytes());
        write!(f, "{kind}.{number}.{id}")
    }
}

impl FromStr for PageCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let read = || {
            let (kind, rest) = text.split_once('.')?;
            let (number, id) = rest.split_once('.')?;
            let number = number.parse().ok()?;
            let id = BASE64URL_NOPAD.decode(id.as_bytes()).ok()?;
            let id = String::from_utf8(id).ok()?;
            Some(Self(match kind {
                "r" | "d" | "e" | "x" => {
                    let entry = SetEntry { at_ms: number, id };
                    At::Set(kind.chars().next()?, entry)
                }
                list => {
                    let list = list.strip_prefix('q')?.parse().ok()?;
                    At::List(list, ListEntry { index: number, id })
                }
            }))
        };
        read().ok_or_else(|| InvalidCursor(text.to_owned()))
    }
}

/// A job of a page.
///
/// [`PagedJobs`] has an example.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PagedJob {
    /// The job, without script, input, result and logs.
    pub job: Job,
    /// Time in milliseconds since 1970: the due time of a delayed job, the end of a running job's lease, the end of an
    /// ended job. `None` for a queued job.
    pub at_ms: Option<u64>,
}

/// A page of jobs.
///
/// ```
/// use meshwork::{Client, MAX_PAGE};
///
/// #[meshwork::job]
/// struct Pay { order: u64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// client.enqueue_all((0..3).map(|order| Pay { order })).await?;
/// let (mut found, mut cursor) = (0, None);
/// loop {
///     let page = client.queued_page("hero:q:work:type:pay", cursor.as_ref(), MAX_PAGE).await?;
///     found += page.jobs.len();
///     cursor = page.next;
///     if cursor.is_none() {
///         break;
///     }
/// }
/// assert_eq!(found, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PagedJobs {
    /// The jobs. A page may have fewer than requested, or none, although there are further pages.
    pub jobs: Vec<PagedJob>,
    /// Position of the next page; `None` after the last one.
    pub next: Option<PageCursor>,
}

impl Client {
    /// Returns a page of the jobs in the lists of a queue, in the order of claims, high priority first. If the queue is
    /// named with a priority, only of that list. Jobs in backlogs of concurrency keys are not included.
    ///
    /// A job that stays in the queue is on a page. It may be on two if jobs are deleted meanwhile.
    ///
    /// # Errors
    /// `limit` exceeds [`MAX_PAGE`], the cursor is that of another list, or a call to the server fails.
    #[boxed]
    pub async fn queued_page(
        &self,
        queue: &str,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        at_most(limit)?;
        let lists = match JobKeys::without_priority(queue) == queue {
            true => self.broker.lists_by_priority(queue),
            false => vec![queue.to_owned()],
        };
        let (first, mut after) = match cursor.map(|cursor| &cursor.0) {
            None => (0, None),
            Some(At::List(list, entry)) if *list < lists.len() => (*list, Some(entry.clone())),
            Some(_) => return Err(other_list(cursor)),
        };
        let mut entries = Vec::new();
        for (at, list) in lists.iter().enumerate().skip(first) {
            let count = limit - entries.len();
            let page = self.broker.list_page(list, after.as_ref(), count).await?;
            after = None;
            entries.extend(page.into_iter().map(|entry| (at, entry)));
            if entries.len() >= limit {
                break;
            }
        }
        let full = entries.len() >= limit && limit > 0;
        let last = entries.last().filter(|_| full);
        let next = last.map(|(list, entry)| PageCursor(At::List(*list, entry.clone())));
        let ids: Vec<_> = entries.into_iter().map(|(_, entry)| entry.id).collect();
        let jobs = self.paged(ids).await?.into_iter().flatten();
        let open = jobs.filter(|job| !job.status().is_some_and(|status| status.is_final()));
        let jobs = open.map(|job| PagedJob { job, at_ms: None }).collect();
        Ok(PagedJobs { jobs, next })
    }

    /// Returns a page of running jobs, of one queue or of all, by the end of their lease.
    ///
    /// A renewed job moves back, so it may be on two pages.
    ///
    /// # Errors
    /// As [`Client::queued_page`].
    #[boxed]
    pub async fn running_page(
        &self,
        queue: Option<&str>,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        let sets = ('r', &[JobSet::Running][..], false);
        self.set_page(sets, queue, cursor, limit).await
    }

    /// Returns a page of delayed jobs, of one queue or of all, the next due first. Jobs that wait for their retry are
    /// included.
    ///
    /// # Errors
    /// As [`Client::queued_page`].
    #[boxed]
    pub async fn delayed_page(
        &self,
        queue: Option<&str>,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        let sets = ('d', &[JobSet::Delayed][..], false);
        self.set_page(sets, queue, cursor, limit).await
    }

    /// Returns a page of ended jobs, of one queue or of all, the last ended first. Dead letters are included.
    ///
    /// # Errors
    /// As [`Client::queued_page`].
    #[boxed]
    pub async fn ended_page(
        &self,
        queue: Option<&str>,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        let sets = ('e', &[JobSet::Ended, JobSet::Dead][..], true);
        self.set_page(sets, queue, cursor, limit).await
    }

    /// Returns a page of dead letters, of one queue or of all, the last first.
    ///
    /// # Errors
    /// As [`Client::queued_page`].
    #[boxed]
    pub async fn dead_page(
        &self,
        queue: Option<&str>,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        let sets = ('x', &[JobSet::Dead][..], true);
        self.set_page(sets, queue, cursor, limit).await
    }

    async fn set_page(
        &self,
        (kind, sets, latest_first): (char, &[JobSet], bool),
        queue: Option<&str>,
        cursor: Option<&PageCursor>,
        limit: usize,
    ) -> Result<PagedJobs, Error> {
        at_most(limit)?;
        let mut after = match cursor.map(|cursor| &cursor.0) {
            None => None,
            Some(At::Set(of, entry)) if *of == kind => Some(entry.clone()),
            Some(_) => return Err(other_list(cursor)),
        };
        let (mut page, mut compared) = (PagedJobs::default(), 0);
        while page.jobs.len() < limit {
            let left = limit - page.jobs.len();
            let window = match queue {
                None => left,
                Some(_) => left.max(WINDOW).min(MAX_COMPARED - compared),
            };
            let (mut entries, mut whole) = (Vec::new(), true);
            for set in sets {
                let found = self
                    .broker
                    .set_page(*set, after.as_ref(), latest_first, window);
                let found = found.await?;
                whole &= found.last;
                entries.extend(found.entries);
            }
            whole &= entries.len() <= window;
            entries.sort();
            if latest_first {
                entries.reverse();
            }
            entries.truncate(window);
            compared += entries.len();
            let ids = entries.iter().map(|entry| entry.id.clone()).collect();
            let jobs = self.paged(ids).await?;
            // Entries that moved meanwhile are on the next page.
            let moved = entries.is_empty() && !whole;
            for (entry, job) in entries.into_iter().zip(jobs) {
                if page.jobs.len() == limit {
                    whole = false;
                    break;
                }
                let at_ms = Some(entry.at_ms);
                after = Some(entry);
                if let Some(job) = job.filter(|job| self.is_of(queue, job)) {
                    page.jobs.push(PagedJob { job, at_ms });
                }
            }
            if whole {
                return Ok(page);
            }
            if moved || compared >= MAX_COMPARED {
                break;
            }
        }
        page.next = after.map(|entry| PageCursor(At::Set(kind, entry)));
        Ok(page)
    }

    /// Returns true if a job is of a queue, or of one of its priorities.
    fn is_of(&self, queue: Option<&str>, job: &Job) -> bool {
        queue.is_none_or(|queue| {
            let own = self.broker.queue_of(job);
            own == queue || JobKeys::without_priority(&own) == queue
        })
    }

    async fn paged(&self, ids: Vec<String>) -> Result<Vec<Option<Job>>, Error> {
        let ids: Vec<_> = ids.into_iter().map(JobId::foreign).collect();
        Ok(self.broker.summaries(&ids).await?)
    }
}

fn at_most(limit: usize) -> Result<(), Error> {
    match limit {
        0..=MAX_PAGE => Ok(()),
        given => Err(Error::Broker(meshwork_broker::Error::TooMany {
            verb: "pages",
            most: MAX_PAGE,
            given,
        })),
    }
}

fn other_list(cursor: Option<&PageCursor>) -> Error {
    let text = cursor.map(PageCursor::to_string).unwrap_or_default();
    Error::Cursor(InvalidCursor(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_written() {
        for at in [
            At::List(
                3,
                ListEntry {
                    index: 7,
                    id: "a.b ü".to_owned(),
                },
            ),
            At::Set(
                'e',
                SetEntry {
                    at_ms: u64::MAX,
                    id: String::new(),
                },
            ),
        ] {
            let cursor = PageCursor(at);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in [
            "", "q", "y.1.YQ", "q1.1", "r.-1.YQ", "d.1.%", "qq.1.YQ", "q1.1._w",
        ] {
            let error = text.parse::<PageCursor>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
