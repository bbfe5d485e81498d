//! Subscriptions to the notifications of a service. A task receives them on its own connection, buffers a bounded
//! number, and reconnects after errors. The reader is informed of gaps.

use meshwork_macros::boxed;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork_broker::conn::{Heard, Subscriber};
use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Backoff, Error};
use meshwork_model::nooble::Action;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guard::reading;
use super::request::fresh;

/// Greatest number of unread notifications. Further ones are dropped and counted.
pub const MAX_UNREAD: usize = 1_000;
/// Greatest number of bytes of unread notifications, which may be megabytes long.
const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;
/// Time without a message after which the server is pinged, since a dead connection may show no error.
const SILENCE: Duration = Duration::from_secs(10);

/// Item of a subscription.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<T> {
    /// A notification.
    Received(Box<Notification<T>>),
    /// Number of notifications that were dropped here, since the buffer was full.
    Dropped(u64),
    /// The connection broke and was restored; notifications may be missing.
    Gap,
    /// A message that is no notification, or whose data does not fit the type.
    Unreadable {
        /// Event of the channel.
        event: String,
        /// Fault.
        why: String,
        /// Raw message.
        message: Vec<u8>,
    },
}

/// A notification.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Notification<T> {
    /// Event, by its subscribed name.
    pub event: String,
    /// Data.
    pub data: T,
    /// The action, with all its ids.
    pub action: Action,
}

/// Subscription to notifications of one service. It ends when this is dropped.
#[derive(Debug)]
pub struct Subscription<T> {
    broker: Nooble,
    channels: Arc<Channels>,
    unread: Arc<Unread>,
    _stop: DropGuard,
    data: PhantomData<fn() -> T>,
}

/// Subscribed channels, and the event of each.
#[derive(Debug)]
struct Channels {
    names: Vec<String>,
    events: Vec<String>,
}

/// Buffer of received, unread messages.
#[derive(Debug, Default)]
struct Unread {
    kept: Mutex<Kept>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    heard: VecDeque<Word>,
    bytes: usize,
    /// Number of notifications that were dropped since the last buffered one.
    dropped: u64,
    /// True if the connection broke since then.
    gap: bool,
}

/// A received message, raw.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Said(Heard),
    Dropped(u64),
    Gap,
}

impl Kept {
    fn say(&mut self, heard: Heard) {
        let bytes = heard.message.len();
        let full = self.heard.len() >= MAX_UNREAD || self.bytes + bytes > MAX_UNREAD_BYTES;
        // A larger message is kept if it is the only one.
        if full && !self.heard.is_empty() {
            self.dropped += 1;
            return;
        }
        while let Some(missed) = self.missed() {
            self.heard.push_back(missed);
        }
        self.bytes += bytes;
        self.heard.push_back(Word::Said(heard));
    }

    /// Returns the gap after the last buffered message, if any.
    fn missed(&mut self) -> Option<Word> {
        match std::mem::take(&mut self.dropped) {
            0 => std::mem::take(&mut self.gap).then_some(Word::Gap),
            many => Some(Word::Dropped(many)),
        }
    }

    fn pop(&mut self) -> Option<Word> {
        let word = self.heard.pop_front().or_else(|| self.missed())?;
        if let Word::Said(heard) = &word {
            self.bytes -= heard.message.len();
        }
        Some(word)
    }
}

impl Unread {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, heard: Heard) {
        self.kept().say(heard);
        self.more.notify_one();
    }

    fn gap(&self) {
        self.kept().gap = true;
        self.more.notify_one();
    }

    async fn next(&self) -> Word {
        loop {
            let more = self.more.notified();
            if let Some(word) = self.kept().pop() {
                return word;
            }
            more.await;
        }
    }
}

impl<T: DeserializeOwned> Subscription<T> {
    /// Subscribes to the channels of these events. Messages after its return are received.
    pub(super) async fn start(
        broker: &Nooble,
        origin: &str,
        events: &[&str],
        context: Option<&str>,
    ) -> Result<Self, Error> {
        let name = |event: &&str| broker.names().notifications(origin, event, context);
        let channels = Arc::new(Channels {
            names: events.iter().map(name).collect(),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
        });
        let subscriber = broker.subscribe(&channels.names).await?;
        let (unread, stop) = (Arc::<Unread>::default(), CancellationToken::new());
        let listens = listen(
            broker.clone(),
            subscriber,
            Arc::clone(&channels),
            Arc::clone(&unread),
        );
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(listens).await });
        Ok(Self {
            broker: broker.clone(),
            channels,
            unread,
            _stop: stop.drop_guard(),
            data: PhantomData,
        })
    }

    /// Waits for the next item, without a timeout. Cancel-safe.
    #[boxed]
    pub async fn next(&mut self) -> Notice<T> {
        match self.unread.next().await {
            Word::Said(heard) => self.read(heard),
            Word::Dropped(many) => Notice::Dropped(many),
            Word::Gap => Notice::Gap,
        }
    }

    fn read(&self, heard: Heard) -> Notice<T> {
        let Channels { names, events } = &*self.channels;
        let at = names.iter().position(|name| *name == heard.channel);
        let event = at.map_or_else(|| heard.channel.clone(), |at| events[at].clone());
        let unreadable = |event, why: String| Notice::Unreadable {
            event,
            why,
            message: heard.message.clone(),
        };
        let dialect = self.broker.names().dialect();
        let action = match reading(|| Action::read(&heard.message, dialect, fresh)) {
            Ok(action) => action,
            Err(error) => return unreadable(event, error),
        };
        match action.data.read() {
            Ok(data) => Notice::Received(Box::new(Notification {
                event,
                data,
                action,
            })),
            Err(error) => unreadable(
                event,
                format!("its data is not what is listened for: {error}"),
            ),
        }
    }
}

/// Receives messages for ever, over a connection that reconnects.
async fn listen(
    broker: Nooble,
    mut subscriber: Subscriber,
    channels: Arc<Channels>,
    unread: Arc<Unread>,
) {
    loop {
        let error = hear(&broker, &mut subscriber, &channels.names, &unread).await;
        // Messages are lost meanwhile.
        broker.outages().failed("listen", &error);
        let mut backoff = Backoff::new();
        subscriber = loop {
            backoff.wait().await;
            match broker.subscribe(&channels.names).await {
                Ok(subscriber) => break subscriber,
                Err(error) => broker.outages().failed("listen", &error),
            }
        };
        broker.outages().succeeded("listen");
        unread.gap();
    }
}

/// Receives messages until the connection breaks.
async fn hear(
    broker: &Nooble,
    subscriber: &mut Subscriber,
    names: &[String],
    unread: &Unread,
) -> Error {
    loop {
        match tokio::time::timeout(SILENCE, broker.heard(subscriber)).await {
            Ok(Ok(heard)) => {
                if let Some(heard) = heard {
                    unread.say(heard);
                }
            }
            Ok(Err(error)) => return error,
            Err(_) => {
                if let Err(error) = broker.subscribe_again(subscriber, names).await {
                    return error;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(message: &str) -> Heard {
        Heard {
            channel: "c".to_owned(),
            message: message.as_bytes().to_vec(),
        }
    }

    fn said(message: &str) -> Option<Word> {
        Some(Word::Said(heard(message)))
    }

    #[test]
    fn what_is_too_much_is_counted_where_it_is_missing() {
        let mut kept = Kept::default();
        for n in 0..MAX_UNREAD + 5 {
            kept.say(heard(&n.to_string()));
        }
        assert_eq!(kept.pop(), said("0"));
        kept.say(heard("next"));
        for n in 1..MAX_UNREAD {
            assert_eq!(kept.pop(), said(&n.to_string()));
        }
        assert_eq!(kept.pop(), Some(Word::Dropped(5)));
        assert_eq!(kept.pop(), said("next"));
        assert_eq!((kept.pop(), kept.bytes), (None, 0));
    }

    #[test]
    fn what_is_too_long_is_counted_too_and_one_alone_is_kept() {
        let mut kept = Kept::default();
        let long = "x".repeat(MAX_UNREAD_BYTES + 1);
        kept.say(heard(&long));
        kept.say(heard("a"));
        assert_eq!(kept.pop(), said(&long));
        assert_eq!((kept.pop(), kept.pop()), (Some(Word::Dropped(1)), None));
    }

    #[test]
    fn a_gap_is_told_also_where_nothing_more_is_kept() {
        let mut kept = Kept::default();
        for _ in 0..MAX_UNREAD {
            kept.say(heard("a"));
        }
        kept.gap = true;
        kept.say(heard("b"));
        for _ in 0..MAX_UNREAD {
            assert_eq!(kept.pop(), said("a"));
        }
        assert_eq!(kept.pop(), Some(Word::Dropped(1)));
        assert_eq!((kept.pop(), kept.pop()), (Some(Word::Gap), None));
        kept.gap = true;
        kept.say(heard("c"));
        assert_eq!(
            (kept.pop(), kept.pop(), kept.pop()),
            (Some(Word::Gap), said("c"), None)
        );
    }
}
