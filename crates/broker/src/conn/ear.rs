//! A connection that hears what others publish. It does not come back when it breaks: whoever listens makes another.

use bytes::Bytes;
use futures_util::StreamExt;
use meshwork_embedded::{Reply, Session};
use redis::RedisResult;
use redis::aio::PubSub;

use super::{CALL_TIMEOUT, gone, in_time};

/// A connection that listens to channels.
pub struct Ear(Kind);

enum Kind {
    Server(PubSub),
    Engine(Session),
}

impl Ear {
    pub(super) fn server(connection: PubSub) -> Self {
        Self(Kind::Server(connection))
    }

    pub(super) fn engine(session: Session) -> Self {
        Self(Kind::Engine(session))
    }

    /// Listens to a channel from when it returns.
    ///
    /// # Errors
    /// If the connection is gone, or the user may not.
    pub async fn listen(&mut self, channel: &str) -> RedisResult<()> {
        self.say("SUBSCRIBE", channel).await
    }

    /// Listens to a channel no more.
    ///
    /// # Errors
    /// If the connection is gone.
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

    /// Returns when something was said on a channel; what it is, the caller finds out where it is kept. It may also
    /// return for nothing.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn heard(&mut self) -> RedisResult<()> {
        let heard = match &mut self.0 {
            Kind::Server(connection) => connection.on_message().next().await.is_some(),
            Kind::Engine(session) => session.next_push().await.is_some(),
        };
        match heard {
            true => Ok(()),
            false => Err(gone("nothing more is heard")),
        }
    }
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ear").finish()
    }
}
