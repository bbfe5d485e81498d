//! present: say that a worker is there.

use std::time::Duration;

use super::text;
use crate::script::Verb;
use crate::{Broker, Error};

/// How long a worker counts as present after it last said so (Hero: `EX 15`).
pub const PRESENT_FOR: Duration = Duration::from_secs(15);

/// What a worker says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Presence<'a> {
    /// The key that names it ([`presence_key`](meshwork_model::keys::hero::Hero::presence_key)).
    pub key: &'a str,
    /// The JSON of Hero, section 1.
    pub value: &'a str,
    /// A part of each value that this process writes, and no other process.
    pub mark: &'a str,
    /// What may be written over, if it still stands there: the value of a process that is known to be gone.
    pub over: Option<&'a str>,
}

impl Broker {
    /// Says for the next 15 seconds that a worker is there. If another one of that name is, nothing is
    /// written, and what that one wrote is returned.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn present(&self, presence: Presence<'_>) -> Result<Option<String>, Error> {
        self.say(presence, PRESENT_FOR).await
    }

    /// Says that a worker is there no more.
    ///
    /// # Errors
    /// If the server does not take the call; the key then ends by itself.
    pub async fn depart(&self, presence: Presence<'_>) -> Result<(), Error> {
        self.say(presence, Duration::ZERO).await.map(drop)
    }

    async fn say(&self, presence: Presence<'_>, live: Duration) -> Result<Option<String>, Error> {
        let other: Vec<u8> = self
            .scripts
            .call(Verb::Present)
            .key(presence.key)
            .arg(self.clock.argument())
            .arg(presence.value)
            .arg(live.as_secs())
            .arg(presence.mark)
            .arg(presence.over.unwrap_or_default())
            .run(&self.conn)
            .await?;
        Ok(Some(text(other)).filter(|other| !other.is_empty()))
    }
}
