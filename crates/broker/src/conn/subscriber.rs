//! Subscriptions to channels. A broken connection is not reconnected: the caller opens another one.

use futures_util::StreamExt;
use redis::aio::PubSub;
use redis::{RedisError, RedisFuture, RedisResult};

use super::{CALL_TIMEOUT, gone, in_time};

const SUBSCRIBE: &str = "SUBSCRIBE";
const UNSUBSCRIBE: &str = "UNSUBSCRIBE";

/// A connection that subscribes to channels.
pub struct Subscriber(Box<dyn Channels>);

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The channel.
    pub channel: String,
    /// The message.
    pub message: Vec<u8>,
}

/// A connection that carries subscriptions.
pub(super) trait Channels: Send + Sync {
    /// Subscribes to a channel, or unsubscribes.
    fn say<'a>(&'a mut self, word: &'static str, channel: &'a str) -> RedisFuture<'a, ()>;

    /// Waits for the next message; `None` for another push.
    fn heard(&mut self) -> RedisFuture<'_, Option<Heard>>;
}

impl Channels for PubSub {
    fn say<'a>(&'a mut self, word: &'static str, channel: &'a str) -> RedisFuture<'a, ()> {
        let limit = Some(CALL_TIMEOUT);
        Box::pin(async move {
            match word {
                SUBSCRIBE => in_time(limit, self.subscribe(channel)).await,
                _ => in_time(limit, self.unsubscribe(channel)).await,
            }
        })
    }

    fn heard(&mut self) -> RedisFuture<'_, Option<Heard>> {
        Box::pin(async move {
            let message = self.on_message().next().await.ok_or_else(silent)?;
            Ok(Some(Heard {
                channel: message.get_channel_name().to_owned(),
                message: message.get_payload_bytes().to_vec(),
            }))
        })
    }
}

/// Returns the error of a connection that receives nothing more.
pub(super) fn silent() -> RedisError {
    gone("nothing more is heard")
}

impl Subscriber {
    pub(super) fn new(channels: impl Channels + 'static) -> Self {
        Self(Box::new(channels))
    }

    /// Subscribes to a channel; the subscription is active when this returns.
    ///
    /// # Errors
    /// The connection is broken, or the user lacks the right.
    pub async fn listen(&mut self, channel: &str) -> RedisResult<()> {
        self.0.say(SUBSCRIBE, channel).await
    }

    /// Unsubscribes from a channel.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn leave(&mut self, channel: &str) -> RedisResult<()> {
        self.0.say(UNSUBSCRIBE, channel).await
    }

    /// Returns the next message. It may also return `None` without one.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn heard(&mut self) -> RedisResult<Option<Heard>> {
        self.0.heard().await
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subscriber").finish()
    }
}
