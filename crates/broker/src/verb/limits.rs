//! limits: how many ids a queue may hold. `enqueue` refuses what is more.

use std::collections::BTreeMap;

use super::text;
use crate::{Broker, Error};

/// The highest limit: more than that no server has memory for.
pub const MAX_QUEUE_LIMIT: u64 = 1_000_000_000;

/// The field of the limit that holds for every queue without one of its own; that of a queue's own follows
/// a colon. The script of `enqueue` reads both.
const FIELD: &str = "limit";

/// How many ids queues may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Every queue without a limit of its own.
    pub default: Option<u64>,
    /// Limits by queue.
    pub queues: BTreeMap<String, u64>,
}

impl Limits {
    /// The limit that holds for `queue`.
    #[must_use]
    pub fn of(&self, queue: &str) -> Option<u64> {
        self.queues.get(queue).copied().or(self.default)
    }
}

fn field(queue: Option<&str>) -> String {
    queue.map_or_else(|| FIELD.to_owned(), |queue| format!("{FIELD}:{queue}"))
}

impl Broker {
    /// Sets how many ids `queue` may hold, or takes its limit away; without a queue, the limit of all that
    /// have none of their own. Each priority of a queue is a list of its own. 0 lets nothing in. Jobs that
    /// come back (a retry, a worker that hands back) are never refused.
    ///
    /// # Errors
    /// If the limit is over [`MAX_QUEUE_LIMIT`], or the server does not take the call.
    pub async fn limit_queue(&self, queue: Option<&str>, limit: Option<u64>) -> Result<(), Error> {
        let mut cmd = match limit {
            Some(given) if given > MAX_QUEUE_LIMIT => return Err(Error::QueueLimit { given }),
            Some(_) => redis::cmd("HSET"),
            None => redis::cmd("HDEL"),
        };
        cmd.arg(self.keys.config()).arg(field(queue)).arg(limit);
        self.ask(&cmd).await
    }

    /// The limits of all queues.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn limits(&self) -> Result<Limits, Error> {
        let config = redis::cmd("HGETALL").arg(self.keys.config()).to_owned();
        let fields: Vec<(Vec<u8>, Vec<u8>)> = self.ask(&config).await?;
        let mut limits = Limits::default();
        for (name, value) in fields {
            let (name, limit) = (text(name), text(value).trim().parse().ok());
            let Some(limit) = limit else { continue };
            if name == FIELD {
                limits.default = Some(limit);
            } else if let Some(queue) = name.strip_prefix(FIELD).and_then(|q| q.strip_prefix(':')) {
                limits.queues.insert(queue.to_owned(), limit);
            }
        }
        Ok(limits)
    }
}
