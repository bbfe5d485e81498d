//! register: registers a live worker.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::context::RunnerId;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::text;

/// Time to live of a registration (Hero: `EX 15`).
pub const REGISTRATION_TTL: Duration = Duration::from_secs(15);

/// The registration of a worker.
#[derive(Debug, Clone, Copy)]
pub struct Registration<'a> {
    /// Key of the registration ([`presence_key`](meshwork_model::keys::hero::JobKeys::presence_key)).
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
    #[boxed]
    pub async fn register(&self, presence: Registration<'_>) -> Result<Option<String>, Error> {
        self.register_for(presence, REGISTRATION_TTL).await
    }

    /// As [`Broker::register`], for another time.
    ///
    /// # Errors
    /// As for [`Broker::register`].
    #[boxed]
    pub async fn register_for(
        &self,
        presence: Registration<'_>,
        live: Duration,
    ) -> Result<Option<String>, Error> {
        let mut call = self.scripts.call(Verb::Register).key(presence.key);
        let runner = self.runner_of(presence.key);
        if let Some((seen, _)) = &runner {
            call.push_key(seen);
        }
        let other: Vec<u8> = call
            .arg(self.clock.argument())
            .arg(presence.value)
            .arg(live.as_secs())
            .arg(presence.mark)
            .arg(presence.over.unwrap_or_default())
            .arg(runner.map_or(String::new(), |(_, id)| id.to_string()))
            .run(&self.conn)
            .await?;
        Ok(Some(text(other)).filter(|other| !other.is_empty()))
    }

    /// Returns the key of the signs of life and the number of the runner with this registration. Workers of contexts are
    /// runners, and their names are numbers.
    fn runner_of(&self, registration: &str) -> Option<(String, RunnerId)> {
        let (_, name) = registration.rsplit_once(':')?;
        Some((self.keys.context()?.runners_seen(), name.parse().ok()?))
    }

    /// Keeps registrations of a worker for `live`, as they are, without a script. Returns false if the values are not
    /// all this worker's; [`Broker::register`] then returns which.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn renew_registration(
        &self,
        keys: &[&str],
        mark: &str,
        live: Duration,
    ) -> Result<bool, Error> {
        let live = live.as_millis() as u64;
        let now = self.now().await?;
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for key in keys {
            pipe.cmd("GET").arg(key);
        }
        for key in keys {
            pipe.cmd("PEXPIRE").arg(key).arg(live);
            pipe.cmd("ZADD")
                .arg(self.keys.registrations())
                .arg("XX")
                .arg(now + live)
                .arg(key);
        }
        let needed = pipe.len();
        // A registration holds without the sign of life.
        for (seen, id) in keys.iter().filter_map(|key| self.runner_of(key)) {
            pipe.cmd("HSET").arg(seen).arg(id.to_string()).arg(now);
        }
        let replies = pipe.query_async(&mut self.conn.clone()).await;
        let replies = replies.and_then(|replies: Vec<redis::RedisResult<redis::Value>>| {
            let needed = replies.into_iter().take(needed);
            needed.collect::<Result<Vec<_>, _>>()
        });
        let replies = replies.map_err(|source| {
            let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
            Error::of_keys("register", &keys, source)
        })?;
        let mut values = replies.iter().take(keys.len());
        Ok(values.all(|value| match value {
            redis::Value::BulkString(value) => text(value.clone()).contains(mark),
            _ => false,
        }))
    }

    /// Deregisters a worker.
    ///
    /// # Errors
    /// The server refuses the call; the registration then expires.
    #[boxed]
    pub async fn deregister(&self, presence: Registration<'_>) -> Result<(), Error> {
        self.register_for(presence, Duration::ZERO).await.map(drop)
    }
}
