//! settings: reads the settings of all queues, and limits the number of their ids. `configure` changes the other
//! settings.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::context;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::QueueSettings;
use meshwork_model::sandbox::Profile;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::{Fields, text};

/// Greatest limit; no server has memory for more.
pub const MAX_QUEUE_LIMIT: u64 = 1_000_000_000;

/// Field of the limit of all queues without one of their own. For a queue's own limit, a colon and the queue follow.
/// The script of `enqueue` reads both.
const FIELD: &str = "limit";
/// Prefix of the fields of all other settings; the queue without its priority follows.
const QUEUE: &str = "queue:";
/// Prefix of the fields of keys' weights; the same queue, a blank and the key follow.
const WEIGHT: &str = "weight:";

/// Greatest numbers of ids in queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Limit of queues without one of their own.
    pub default: Option<u64>,
    /// Limits by queue.
    pub queues: BTreeMap<String, u64>,
}

impl Limits {
    /// Returns the limit of `queue`.
    #[must_use]
    pub fn of(&self, queue: &str) -> Option<u64> {
        self.queues.get(queue).copied().or(self.default)
    }
}

/// Settings of all queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Greatest numbers of ids, by list.
    pub limits: Limits,
    /// Other settings, by queue without its priority; only those with a setting.
    pub queues: BTreeMap<String, QueueSettings>,
}

impl Settings {
    /// Returns the settings for the queue of a list.
    #[must_use]
    pub fn of(&self, list: &str) -> Option<&QueueSettings> {
        self.queues.get(JobKeys::without_priority(list))
    }

    /// Reads stored names and values.
    pub(crate) fn read(fields: Fields) -> Self {
        let mut settings = Self::default();
        for (name, value) in fields {
            settings.add(&text(name), &text(value));
        }
        settings
    }

    fn add(&mut self, name: &str, value: &str) {
        if let Some(queue) = name.strip_prefix(QUEUE) {
            let weights = std::mem::take(&mut self.entry(queue).weights);
            *self.entry(queue) = QueueSettings::read(value);
            self.entry(queue).weights = weights;
        } else if let Some((queue, key)) = name.strip_prefix(WEIGHT).and_then(|w| w.split_once(' '))
        {
            if let Ok(weight) = value.trim().parse() {
                self.entry(queue).weights.insert(key.to_owned(), weight);
            }
        } else if let Some(queue) = name.strip_prefix(FIELD)
            && let Ok(limit) = value.trim().parse()
        {
            match queue.strip_prefix(':') {
                Some(queue) => _ = self.limits.queues.insert(queue.to_owned(), limit),
                None if queue.is_empty() => self.limits.default = Some(limit),
                None => {}
            }
        }
    }

    fn entry(&mut self, queue: &str) -> &mut QueueSettings {
        self.queues.entry(queue.to_owned()).or_default()
    }
}

fn field(queue: Option<&str>) -> String {
    queue.map_or_else(|| FIELD.to_owned(), |queue| format!("{FIELD}:{queue}"))
}

impl Broker {
    /// Sets or removes the greatest number of ids in `queue`; without a queue, that of all queues without one of
    /// their own. Each priority of a queue is a list of its own. 0 refuses all jobs. Retries and released jobs are
    /// never refused.
    ///
    /// # Errors
    /// The limit exceeds [`MAX_QUEUE_LIMIT`], or the server refuses the call.
    #[boxed]
    pub async fn set_max_length(
        &self,
        queue: Option<&str>,
        limit: Option<u64>,
    ) -> Result<(), Error> {
        let mut cmd = match limit {
            Some(given) if given > MAX_QUEUE_LIMIT => return Err(Error::QueueLimit { given }),
            Some(_) => redis::cmd("HSET"),
            None => redis::cmd("HDEL"),
        };
        cmd.arg(self.keys.config()).arg(field(queue)).arg(limit);
        self.ask("settings", &cmd).await
    }

    /// Returns the settings of all queues.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn settings(&self) -> Result<Settings, Error> {
        let config = redis::cmd("HGETALL").arg(self.keys.config()).to_owned();
        Ok(Settings::read(self.ask("settings", &config).await?))
    }

    /// Returns the settings of one queue, without weights and the greatest number of its ids.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn settings_of(&self, queue: &str) -> Result<QueueSettings, Error> {
        let mut get = redis::cmd("HGET");
        let field = format!("{QUEUE}{}", JobKeys::without_priority(queue));
        get.arg(self.keys.config()).arg(field);
        let kept: Option<Vec<u8>> = self.ask("settings", &get).await?;
        Ok(QueueSettings::read(&text(kept.unwrap_or_default())))
    }

    /// Returns the sandbox that an admin of the context granted to jobs of other nodes; `None` outside of contexts, and
    /// if the record has none or an unknown one.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn granted_sandbox(&self) -> Result<Option<Profile>, Error> {
        let Some(context) = self.keys.context() else {
            return Ok(None);
        };
        let mut get = redis::cmd("HGET");
        get.arg(context.record()).arg(context::field::SANDBOX);
        let granted: Option<Vec<u8>> = self.ask("settings", &get).await?;
        Ok(granted.and_then(|word| text(word).parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_config_are_told_apart() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("weight:q a b", "3"),
            ("queue:q", "paused=1 concurrency=2"),
            ("weight:q c", "many"),
            ("limit", "9"),
            ("limit:q:prio:0", "8"),
            ("limits", "7"),
            ("migration:osis", "double hero:x 1"),
        ] {
            settings.add(name, value);
        }
        let limits = &settings.limits;
        assert_eq!((limits.default, limits.of("q:prio:0")), (Some(9), Some(8)));
        assert_eq!(limits.of("q"), Some(9));
        let queue = settings.of("q:prio:2").unwrap();
        assert!(queue.paused && queue.concurrency == Some(2));
        assert_eq!(queue.weights, BTreeMap::from([("a b".to_owned(), 3)]));
        assert_eq!(settings.queues.len(), 1);
    }
}
