//! Events: the changes of jobs, with actor and time.

use futures_util::FutureExt;
use meshwork_broker::{JobEvent, MAX_ITEMS};
use meshwork_model::name::JobId;

use super::Client;
use super::follow::{Follow, SLICE};
use crate::Error;

/// Which events are meant; by default, all that are kept.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only those of this job.
    pub job: Option<JobId>,
    /// Only those at this time or later, in milliseconds since 1970.
    pub since_ms: u64,
}

impl EventFilter {
    fn includes(&self, event: &JobEvent) -> bool {
        let of_job = |job: &JobId| event.job == job.as_str();
        event.at_ms >= self.since_ms && self.job.as_ref().is_none_or(of_job)
    }
}

/// Events that were there.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EventPage {
    /// The oldest first.
    pub events: Vec<JobEvent>,
    /// The newest event of all, of whichever job: what comes later comes after it.
    pub last: Option<String>,
}

/// Follows events.
#[derive(Debug)]
pub struct EventFollower {
    follow: Follow,
    filter: EventFilter,
    last: Option<String>,
}

impl Client {
    /// The newest `most` events that `filter` includes. To find those of one job, all that are kept may be
    /// read, a thousand at a time.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn events(&self, filter: &EventFilter, most: usize) -> Result<EventPage, Error> {
        let mut page = EventPage::default();
        let mut oldest: Option<String> = None;
        loop {
            let before = oldest.as_deref();
            let events = self
                .broker
                .events(before, filter.since_ms, MAX_ITEMS)
                .await?;
            if page.last.is_none() {
                page.last = events.first().map(|event| event.id.clone());
            }
            oldest = events.last().map(|event| event.id.clone());
            let end = events.len() < MAX_ITEMS;
            let wanted = events.into_iter().filter(|event| filter.includes(event));
            page.events.extend(wanted);
            if end || page.events.len() >= most {
                break;
            }
        }
        page.events.truncate(most);
        page.events.reverse();
        Ok(page)
    }

    /// Follows the events that `filter` includes, from the one after `last` on, or from the oldest.
    #[must_use]
    pub fn follow_events(&self, filter: EventFilter, last: Option<String>) -> EventFollower {
        EventFollower {
            follow: Follow::new(self.broker.clone()),
            filter,
            last,
        }
    }
}

impl EventFollower {
    /// The next events. While the server is away the read is repeated for 15 s.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn next(&mut self) -> Result<Vec<JobEvent>, Error> {
        loop {
            let last = self.last.clone();
            let events = self.follow.ask(|broker, blocking| {
                let last = last.clone();
                async move { broker.next_events(&blocking, last.as_deref(), SLICE).await }.boxed()
            });
            let mut events = events.await?;
            if let Some(event) = events.last() {
                self.last = Some(event.id.clone());
            }
            events.retain(|event| self.filter.includes(event));
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}
