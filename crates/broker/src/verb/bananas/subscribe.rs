//! listen: receives notifications of results.

use super::Bananas;
use crate::conn::Subscriber;
use crate::error::Error;
use meshwork_macros::boxed;

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "listen",
        source,
    }
}

impl Bananas {
    /// Opens a connection for subscriptions.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn subscriber(&self) -> Result<Subscriber, Error> {
        self.conn.subscriber().await.map_err(failed)
    }

    /// Subscribes to the result of a job; [`Bananas::wait_for_result`] receives what is published from now on.
    ///
    /// # Errors
    /// The connection breaks, or the user lacks the right.
    #[boxed]
    pub async fn subscribe(&self, subscriber: &mut Subscriber, id: &str) -> Result<(), Error> {
        subscriber
            .listen(&self.keys.notify(id))
            .await
            .map_err(failed)
    }

    /// Unsubscribes.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
    pub async fn unsubscribe(&self, subscriber: &mut Subscriber, id: &str) -> Result<(), Error> {
        subscriber
            .leave(&self.keys.notify(id))
            .await
            .map_err(failed)
    }

    /// Returns when any message has arrived, and sometimes without one.
    ///
    /// # Errors
    /// The connection breaks.
    #[boxed]
    pub async fn wait_for_result(&self, subscriber: &mut Subscriber) -> Result<(), Error> {
        subscriber.heard().await.map(|_| ()).map_err(failed)
    }
}
