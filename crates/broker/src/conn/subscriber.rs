//! Subscriptions to channels. A broken connection is not reconnected: the caller opens another one.

use bytes::Bytes;
use futures_util::StreamExt;
use meshwork_embedded::{Reply, Session};
use meshwork_macros::boxed;
use redis::RedisResult;
use redis::aio::PubSub;

use super::{CALL_TIMEOUT, gone, in_time};

/// A connection that subscribes to channels.
pub struct Subscriber(Kind);

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The channel.
    pub channel: String,
    /// The message.
    pub message: Vec<u8>,
}

enum Kind {
    Server(PubSub),
    Engine(Session),
}

impl Subscriber {
    pub(super) fn server(connection: PubSub) -> Self {
        Self(Kind::Server(connection))
    }

    pub(super) fn engine(session: Session) -> Self {
        Self(Kind::Engine(session))
    }

    /// Subscribes to a channel; the subscription is active when this returns.
    ///
    /// # Errors
    /// The connection is broken, or the user lacks the right.
    #[boxed]
    pub async fn listen(&mut self, channel: &str) -> RedisResult<()> {
        self.say("SUBSCRIBE", channel).await
    }

    /// Unsubscribes from a channel.
    ///
    /// # Errors
    /// The connection is broken.
    #[boxed]
    pub async fn leave(&mut self, channel: &str) -> RedisResult<()> {
        self.say("UNSUBSCRIBE", channel).await
    }

    async fn say(&mut self, word: &'static str, channel: &str) -> RedisResult<()> {
        match &mut self.0 {
            Kind::Server(connection) => {
                let limit = Some(CALL_TIMEOUT);
                match word {
                    "SUBSCRIBE" => in_time(limit, connection.subscribe(channel)).await,
                    _ => in_time(limit, connection.unsubscribe(channel)).await,
                }
            }
            Kind::Engine(session) => {
                let words = [word, channel].map(|word| Bytes::copy_from_slice(word.as_bytes()));
                match session.call(&words).await {
                    Reply::Error(_) => Err(gone("the engine does not let us listen")),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Returns the next message. It may also return `None` without one.
    ///
    /// # Errors
    /// The connection is broken.
    #[boxed]
    pub async fn heard(&mut self) -> RedisResult<Option<Heard>> {
        let gone = || gone("nothing more is heard");
        match &mut self.0 {
            Kind::Server(connection) => {
                let message = connection.on_message().next().await.ok_or_else(gone)?;
                Ok(Some(Heard {
                    channel: message.get_channel_name().to_owned(),
                    message: message.get_payload_bytes().to_vec(),
                }))
            }
            Kind::Engine(session) => {
                let push = session.next_push().await.ok_or_else(gone)?;
                Ok(published(push))
            }
        }
    }
}

/// Returns the message in a push of the engine, unless the push confirms a subscription.
fn published(push: Reply) -> Option<Heard> {
    let (Reply::Push(parts) | Reply::Array(parts)) = push else {
        return None;
    };
    match parts.as_slice() {
        [
            Reply::Bulk(kind),
            Reply::Bulk(channel),
            Reply::Bulk(message),
        ] if kind == "message" => Some(Heard {
            channel: String::from_utf8_lossy(channel).into_owned(),
            message: message.to_vec(),
        }),
        _ => None,
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subscriber").finish()
    }
}
