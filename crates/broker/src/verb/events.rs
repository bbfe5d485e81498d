//! events: what happened to jobs, who did it and when, as the scripts have noted it. The newest thirty
//! thousand entries are kept, more or less.

use std::time::Duration;

use super::stream::{BEGINNING, Entry, Wanted};
use super::{BlockingConn, MAX_ITEMS, at_most, text};
use crate::{Broker, Error};

/// One thing that happened to a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEvent {
    /// Its place among all events; later ones have higher ones. Events that happened to several jobs alike
    /// share one.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The job.
    pub job: String,
    /// What happened: `enqueue`, `claim`, `retry`, `stop`, `finished`, `error` …
    pub event: String,
    /// Who did it: a worker, or what [`Broker::acting_as`] says; a job's id where its end was the cause.
    pub by: String,
    /// More about it: a message, a reason, a type.
    pub note: String,
}

impl JobEvent {
    /// What an entry says, in its order: what happened to several jobs alike stands in one.
    fn all(entry: Entry) -> Vec<Self> {
        let mut event = Self {
            at_ms: entry.at_ms(),
            id: entry.id.clone(),
            ..Self::default()
        };
        let mut jobs = Vec::new();
        for (name, value) in entry.fields() {
            match name.as_slice() {
                b"job" => jobs.push(text(value)),
                b"jobs" => jobs.extend(text(value).split(' ').map(str::to_owned)),
                b"event" => event.event = text(value),
                b"by" => event.by = text(value),
                b"note" => event.note = text(value),
                _ => {}
            }
        }
        let of = |job| Self {
            job,
            ..event.clone()
        };
        jobs.into_iter().map(of).collect()
    }
}

impl Broker {
    /// The newest events, the newest first: those before the event `before` if one is given, and none
    /// that happened before `since_ms`. `most` counts entries, of which some tell of up to 32 jobs.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn events(
        &self,
        before: Option<&str>,
        since_ms: u64,
        most: usize,
    ) -> Result<Vec<JobEvent>, Error> {
        at_most("events", MAX_ITEMS, most)?;
        let wanted = Wanted::Newest { before, since_ms };
        let entries = self.entries(&self.keys.events(), wanted, most).await?;
        let newest_first = |entry| JobEvent::all(entry).into_iter().rev();
        Ok(entries.into_iter().flat_map(newest_first).collect())
    }

    /// Waits for events after the event `after` (all, if there is none), the oldest first, up to
    /// [`MAX_ITEMS`]; none if none came in time, which is 30 seconds at the longest.
    ///
    /// # Errors
    /// If the connection breaks, or the server does not take the call.
    pub async fn next_events(
        &self,
        blocking: &BlockingConn,
        after: Option<&str>,
        wait: Duration,
    ) -> Result<Vec<JobEvent>, Error> {
        let (stream, after) = (self.keys.events(), after.unwrap_or(BEGINNING));
        let entries = self.next_entries(blocking, &stream, after, MAX_ITEMS, wait);
        Ok(entries.await?.into_iter().flat_map(JobEvent::all).collect())
    }
}
