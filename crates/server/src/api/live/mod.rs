//! Live streams of the API: events of jobs, and their logs. Each stream has one connection to the store while somebody
//! listens, however many do ([`feed`]).

mod feed;
mod position;
mod source;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use meshwork_model::name::JobId;

use crate::api::away::unless_away;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::http::guard::{Holder, Share, Shares};
use feed::Feed;
pub(crate) use feed::{Notice, Subscription};
pub(crate) use position::{Position, placed};
pub(crate) use source::Topic;
use source::{Events, Log};

/// Greatest number of subscriptions: each has a queue of items.
const SUBSCRIPTIONS: usize = 4096;
/// Greatest number of followed logs and contexts: each has a connection to the store.
const FOLLOWED: usize = 256;
/// Greatest number of pages that are read at once.
const READS: usize = 16;
/// The most bytes of pages that were not given yet, 64 MiB. A page of a log may have some megabytes.
const PAGE_BYTES: usize = 64 * 1024 * 1024;

/// The followed streams.
#[derive(Debug)]
pub(crate) struct Live {
    feeds: Mutex<HashMap<Stream, Weak<Feed>>>,
    places: Arc<Shares>,
    followed: Arc<Shares>,
    pages: Pages,
}

/// Limits on pages of stored items, which each subscriber reads for itself.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// Pages that are read at once.
    reads: Arc<Shares>,
    /// Bytes of items that were read and not given yet.
    bytes: Arc<Shares>,
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
            places: Shares::new(SUBSCRIPTIONS),
            followed: Shares::new(FOLLOWED),
            pages: Pages {
                reads: Shares::new(READS),
                bytes: Shares::new(PAGE_BYTES),
            },
        }
    }

    /// Subscribes to events: those after `from`, or new ones.
    pub(crate) async fn events(
        &self,
        call: &Call,
        topic: Topic,
        (from, holder): (Option<Position>, &Holder),
    ) -> Result<Subscription, ApiError> {
        let place = self.place(holder)?;
        let broker = call.client.broker();
        let feed = self.feed(Stream::Events(call.context_number()), || {
            // Each has a connection of its own to the store.
            let place = call.context_number().map(|_| self.follow(holder));
            let source = Box::new(Events(broker.clone()));
            Ok(Feed::new(source, broker.clone(), place.transpose()?))
        })?;
        let subscribes = async {
            Ok(feed
                .subscribe(topic, from, (place, self.pages.clone(), holder))
                .await?)
        };
        unless_away(broker, false, subscribes).await
    }

    /// Subscribes to the log of a job: to the lines after `from`, or to all.
    pub(crate) async fn log(
        &self,
        call: &Call,
        id: JobId,
        (from, holder): (Option<Position>, &Holder),
    ) -> Result<Subscription, ApiError> {
        let place = self.place(holder)?;
        let broker = call.client.broker();
        let status = async { Ok(call.client.status(&id).await?) };
        let status = unless_away(broker, false, status).await?;
        let secrets = status.env_vars.secrets();
        let stream = Stream::Log(call.context_number(), id.clone());
        let feed = self.feed(stream, || {
            let broker = broker.clone();
            let source = Log {
                broker: broker.clone(),
                id,
                secrets,
            };
            let place = self.follow(holder)?;
            Ok(Feed::new(Box::new(source), broker, Some(place)))
        })?;
        let from = from.unwrap_or(Position::START);
        let places = (place, self.pages.clone(), holder);
        let subscribes = async { Ok(feed.subscribe(Topic::All, Some(from), places).await?) };
        unless_away(broker, false, subscribes).await
    }

    /// Takes the place of a feed: of a log, or of the events of a context.
    fn follow(&self, holder: &Holder) -> Result<Share, ApiError> {
        let full = || {
            let message = "too many logs and contexts are followed: end one, or ask again later";
            ApiError::new(Code::TooManyRequests, message)
        };
        self.followed.take(holder, 1).ok_or_else(full)
    }

    fn place(&self, holder: &Holder) -> Result<Share, ApiError> {
        let full = || {
            let message = "there are too many subscriptions: end one, or ask again later";
            ApiError::new(Code::TooManyRequests, message)
        };
        self.places.take(holder, 1).ok_or_else(full)
    }

    /// Returns the feed of a stream. One that has ended is made anew, since its job may run again.
    fn feed(
        &self,
        stream: Stream,
        make: impl FnOnce() -> Result<Arc<Feed>, ApiError>,
    ) -> Result<Arc<Feed>, ApiError> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = feeds.get(&stream).and_then(Weak::upgrade);
        if let Some(feed) = known.filter(|feed| !feed.has_ended()) {
            return Ok(feed);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = make()?;
        feeds.insert(stream, Arc::downgrade(&feed));
        Ok(feed)
    }
}
