//! Events: the changes of jobs, with actor and time.

use futures_util::FutureExt;
use meshwork_broker::{JobEvent, MAX_ITEMS};
use meshwork_macros::boxed;
use meshwork_model::name::JobId;

use super::Client;
use super::follow::{Follow, SLICE};
use crate::Error;

/// Selects events. Default: all stored ones.
///
/// ```
/// use meshwork::{Client, EventFilter};
///
/// #[meshwork::job]
/// struct Pay { order: u64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let job = client.enqueue(Pay { order: 7 }).await?;
/// let filter = EventFilter { job: Some(job.id().clone()), ..EventFilter::default() };
/// let page = client.events(&filter, 10).await?;
/// assert_eq!(page.events[0].event, "enqueue");
/// // Waits for later events.
/// let mut follower = client.follow_events(filter, page.last);
/// job.cancel().await?;
/// assert!(!follower.next().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events of this job.
    pub job: Option<JobId>,
    /// Only events at this time or later, in milliseconds since 1970.
    pub since_ms: u64,
}

impl EventFilter {
    /// Returns true if it selects the event.
    #[must_use]
    pub fn includes(&self, event: &JobEvent) -> bool {
        let of_job = |job: &JobId| event.job == job.as_str();
        event.at_ms >= self.since_ms && self.job.as_ref().is_none_or(of_job)
    }
}

/// A page of events.
///
/// [`EventFilter`] has an example.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EventPage {
    /// Events, oldest first.
    pub events: Vec<JobEvent>,
    /// Id of the newest event of any job; later events follow it.
    pub last: Option<String>,
}

/// Follows events.
///
/// [`EventFilter`] has an example.
#[derive(Debug)]
pub struct EventFollower {
    follow: Follow,
    filter: EventFilter,
    last: Option<String>,
}

impl Client {
    /// Returns the newest `most` events that match `filter`. To find those of one job, it may read all stored events, a
    /// thousand at a time.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
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

    /// Follows the events that match `filter`, from the one after `last`, or from the oldest.
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
    /// Returns the next events. While the server is unreachable, the call is repeated for 15 s.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
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
