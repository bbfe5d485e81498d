//! events: reads the changes of jobs that scripts recorded, with their actors and times. About thirty thousand of the
//! newest entries are kept.

use meshwork_macros::boxed;
use std::time::Duration;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::stream::{BEGINNING, Entry, Wanted};
use crate::verb::{BlockingConn, MAX_ITEMS, at_most, text};

/// A change of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEvent {
    /// Position among all events; later events have higher ones. Equal changes of several jobs share one.
    pub id: String,
    /// Time of the event, in milliseconds since 1970.
    pub at_ms: u64,
    /// The job.
    pub job: String,
    /// The change: `enqueue`, `claim`, `retry`, `stop`, `finished`, `error` …
    pub event: String,
    /// Actor: a worker, or the name set by [`Broker::acting_as`]; a job's id if its end was the cause.
    pub by: String,
    /// Details: a message, a reason, a type.
    pub note: String,
}

impl JobEvent {
    /// Returns the events of an entry, in order. One entry has equal changes of several jobs.
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
    /// Returns the newest events, the newest first: those before the event `before` if it is given, and none before
    /// `since_ms`. `most` counts entries, each of which may have up to 32 jobs.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
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

    /// Returns up to [`MAX_ITEMS`] entries of stored events after the event `after`, the oldest first.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn events_after(&self, after: &str) -> Result<Vec<JobEvent>, Error> {
        let wanted = Wanted::After(after);
        let entries = self.entries(&self.keys.events(), wanted, MAX_ITEMS).await?;
        Ok(entries.into_iter().flat_map(JobEvent::all).collect())
    }

    /// Returns the ids of the oldest and the newest stored event; `None` if there is none.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn event_bounds(&self) -> Result<Option<(String, String)>, Error> {
        self.bounds(&self.keys.events()).await
    }

    /// Waits for events after the event `after` (any, if it is `None`). Returns up to [`MAX_ITEMS`], the oldest
    /// first; none after the timeout, which is at most 30 seconds.
    ///
    /// # Errors
    /// The connection breaks, or the server refuses the call.
    #[boxed]
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
