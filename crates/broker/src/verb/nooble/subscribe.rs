//! subscribe: hear notifications as they are published. Redis keeps none: what is said while nobody listens is gone.

use super::Nooble;
use crate::conn::{Ear, Heard};
use crate::error::Error;
use crate::verb::{MAX_ITEMS, at_most};

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "subscribe",
        source,
    }
}

impl Nooble {
    /// Makes a connection that listens to these channels, [`MAX_ITEMS`] at most: what is published from when it
    /// returns is heard ([`Nooble::heard`]).
    ///
    /// # Errors
    /// If there are too many, or the server does not let us listen.
    pub async fn subscribe(&self, channels: &[String]) -> Result<Ear, Error> {
        at_most("subscribe", MAX_ITEMS, channels.len())?;
        let mut ear = self.conn.ear().await.map_err(failed)?;
        self.subscribe_again(&mut ear, channels).await?;
        Ok(ear)
    }

    /// Says once more that it listens, which changes nothing: a server that is gone without a word does not answer.
    ///
    /// # Errors
    /// If the connection is gone, or the server does not answer in time.
    pub async fn subscribe_again(&self, ear: &mut Ear, channels: &[String]) -> Result<(), Error> {
        for channel in channels {
            let listens = ear.listen(channel).await;
            let channel = std::slice::from_ref(channel);
            listens.map_err(|source| Error::of_keys("subscribe", channel, source))?;
        }
        Ok(())
    }

    /// The next notification; now and then nothing. May be given up at any time without losing one.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn heard(&self, ear: &mut Ear) -> Result<Option<Heard>, Error> {
        ear.heard().await.map_err(failed)
    }
}
