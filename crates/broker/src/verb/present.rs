//! present: registers a live worker.

use std::time::Duration;

use super::text;
use crate::script::Verb;
use crate::{Broker, Error};

/// Time to live of a registration (Hero: `EX 15`).
pub const PRESENT_FOR: Duration = Duration::from_secs(15);

/// The registration of a worker.
#[derive(Debug, Clone, Copy)]
pub struct Presence<'a> {
    /// Key of the registration ([`presence_key`](meshwork_model::keys::hero::Hero::presence_key)).
    pub key: &'a str,
    /// The JSON of Hero, section 1.
    pub value: &'a str,
    /// A text in each value of this process, unique among all processes.
    pub mark: &'a str,
    /// Value of a process that is certainly dead, which may be overwritten.
    pub over: Option<&'a str>,
}

impl Broker {
    /// Registers a worker for the next 15 seconds. If another worker of this name is registered, nothing is written,
    /// and its value is returned.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    pub async fn present(&self, presence: Presence<'_>) -> Result<Option<String>, Error> {
        self.say(presence, PRESENT_FOR).await
    }

    /// Deregisters a worker.
    ///
    /// # Errors
    /// The server refuses the call; the registration then expires.
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
