//! listen: receives notifications of results.

use super::Bananas;
use crate::conn::Ear;
use crate::error::Error;

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
    pub async fn ear(&self) -> Result<Ear, Error> {
        self.conn.ear().await.map_err(failed)
    }

    /// Subscribes to the result of a job; [`Bananas::told`] receives what is published from now on.
    ///
    /// # Errors
    /// The connection breaks, or the user lacks the right.
    pub async fn listen(&self, ear: &mut Ear, id: &str) -> Result<(), Error> {
        ear.listen(&self.keys.notify(id)).await.map_err(failed)
    }

    /// Unsubscribes.
    ///
    /// # Errors
    /// The connection breaks.
    pub async fn hush(&self, ear: &mut Ear, id: &str) -> Result<(), Error> {
        ear.leave(&self.keys.notify(id)).await.map_err(failed)
    }

    /// Returns when any message has arrived, and sometimes without one.
    ///
    /// # Errors
    /// The connection breaks.
    pub async fn told(&self, ear: &mut Ear) -> Result<(), Error> {
        ear.heard().await.map(|_| ()).map_err(failed)
    }
}
