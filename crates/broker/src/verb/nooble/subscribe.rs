//! subscribe: receives notifications as they are published. Redis stores none: without a subscriber they are lost.

use super::Nooble;
use crate::conn::{Heard, Subscriber};
use crate::error::Error;
use crate::verb::{MAX_ITEMS, at_most};
use meshwork_macros::boxed;

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "subscribe",
        source,
    }
}

impl Nooble {
    /// Opens a connection that subscribes to up to [`MAX_ITEMS`] channels. [`Nooble::heard`] receives what is
    /// published after this returns.
    ///
    /// # Errors
    /// There are too many channels, or the server refuses the subscription.
    #[boxed]
    pub async fn subscribe(&self, channels: &[String]) -> Result<Subscriber, Error> {
        at_most("subscribe", MAX_ITEMS, channels.len())?;
        let mut subscriber = self.conn.subscriber().await.map_err(failed)?;
        self.subscribe_again(&mut subscriber, channels).await?;
        Ok(subscriber)
    }

    /// Subscribes again, which changes nothing, but detects a server that vanished.
    ///
    /// # Errors
    /// The connection is broken, or the server does not answer in time.
    #[boxed]
    pub async fn subscribe_again(
        &self,
        subscriber: &mut Subscriber,
        channels: &[String],
    ) -> Result<(), Error> {
        for channel in channels {
            let listens = subscriber.listen(channel).await;
            let channel = std::slice::from_ref(channel);
            listens.map_err(|source| Error::of_keys("subscribe", channel, source))?;
        }
        Ok(())
    }

    /// Returns the next notification, or sometimes `None`. May be cancelled at any time without losing one.
    ///
    /// # Errors
    /// The connection is broken.
    #[boxed]
    pub async fn heard(&self, subscriber: &mut Subscriber) -> Result<Option<Heard>, Error> {
        subscriber.heard().await.map_err(failed)
    }
}
