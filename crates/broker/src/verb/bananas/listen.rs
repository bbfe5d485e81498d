//! listen: hear of results when they are there.

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
    /// Makes a connection to listen on.
    ///
    /// # Errors
    /// If the server does not let us.
    pub async fn ear(&self) -> Result<Ear, Error> {
        self.conn.ear().await.map_err(failed)
    }

    /// Listens for the result of a job: what is published from now on is heard ([`Bananas::told`]).
    ///
    /// # Errors
    /// If the connection breaks, or the user may not listen.
    pub async fn listen(&self, ear: &mut Ear, id: &str) -> Result<(), Error> {
        ear.listen(&self.keys.notify(id)).await.map_err(failed)
    }

    /// Listens no more.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn hush(&self, ear: &mut Ear, id: &str) -> Result<(), Error> {
        ear.leave(&self.keys.notify(id)).await.map_err(failed)
    }

    /// Returns when somebody has said that there is a result, whatever the word, and now and then for nothing.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn told(&self, ear: &mut Ear) -> Result<(), Error> {
        ear.heard().await.map(|_| ()).map_err(failed)
    }
}
