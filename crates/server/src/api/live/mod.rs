//! Live streams of the API: events of jobs, and their logs. Each stream has one connection to the store while somebody
//! listens, however many do ([`feed`]).

mod feed;
mod position;
mod source;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use meshwork_model::name::JobId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use feed::Feed;
pub(crate) use feed::{Notice, Subscription};
pub(crate) use position::{Position, placed};
pub(crate) use source::Topic;
use source::{Events, Log};

/// Greatest number of subscriptions: each has a queue of items.
const SUBSCRIPTIONS: usize = 4096;
/// Greatest number of followed logs: each has a connection to the store.
const LOGS: usize = 256;

/// The followed streams.
#[derive(Debug)]
pub(crate) struct Live {
    feeds: Mutex<HashMap<Stream, Weak<Feed>>>,
    places: Arc<Semaphore>,
}

/// Name of a stream, with the number of its context.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stream {
    Events(Option<u32>),
    Log(Option<u32>, JobId),
}

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            feeds: Mutex::default(),
            places: Arc::new(Semaphore::new(SUBSCRIPTIONS)),
        }
    }

    /// Subscribes to events: those after `from`, or new ones.
    pub(crate) async fn events(
        &self,
        call: &Call,
        topic: Topic,
        from: Option<Position>,
    ) -> Result<Subscription, ApiError> {
        let place = self.place()?;
        let broker = call.client.broker();
        let feed = self.feed(Stream::Events(call.context_number()), || {
            Feed::new(Box::new(Events(broker.clone())), broker.clone())
        })?;
        Ok(feed.subscribe(topic, from, place).await?)
    }

    /// Subscribes to the log of a job: to the lines after `from`, or to all.
    pub(crate) async fn log(
        &self,
        call: &Call,
        id: JobId,
        from: Option<Position>,
    ) -> Result<Subscription, ApiError> {
        let place = self.place()?;
        let broker = call.client.broker();
        let secrets = call.client.status(&id).await?.env_vars.secrets();
        let stream = Stream::Log(call.context_number(), id.clone());
        let feed = self.feed(stream, || {
            let broker = broker.clone();
            let source = Log {
                broker: broker.clone(),
                id,
                secrets,
            };
            Feed::new(Box::new(source), broker)
        })?;
        let from = from.unwrap_or(Position::START);
        Ok(feed.subscribe(Topic::All, Some(from), place).await?)
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let full = |_| {
            let message = "there are too many subscriptions: end one, or ask again later";
            ApiError::new(Code::TooManyRequests, message)
        };
        let places = Arc::clone(&self.places);
        places.try_acquire_owned().map_err(full)
    }

    /// Returns the feed of a stream. One that has ended is made anew, since its job may run again.
    fn feed(
        &self,
        stream: Stream,
        make: impl FnOnce() -> Arc<Feed>,
    ) -> Result<Arc<Feed>, ApiError> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = feeds.get(&stream).and_then(Weak::upgrade);
        if let Some(feed) = known.filter(|feed| !feed.has_ended()) {
            return Ok(feed);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        if feeds.len() > LOGS {
            let message = "too many logs are followed: end one, or ask again later";
            return Err(ApiError::new(Code::TooManyRequests, message));
        }
        let feed = make();
        feeds.insert(stream, Arc::downgrade(&feed));
        Ok(feed)
    }
}
