//! prune: forget jobs that ended long ago.

use std::time::Duration;

use super::MAX_ITEMS;
use crate::script::Verb;
use crate::{Broker, Error};

/// How long ended jobs are kept, and how many. Dead letters are not among them: they stay until somebody
/// deletes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Since they ended.
    pub age: Duration,
    /// The oldest go first.
    pub count: usize,
}

impl Default for Retention {
    /// Seven days, and 100,000 jobs.
    fn default() -> Self {
        Self {
            age: Duration::from_secs(7 * 24 * 3600),
            count: 100_000,
        }
    }
}

impl Broker {
    /// Forgets ended jobs beyond `retention` with their replies and logs, at most [`MAX_ITEMS`] in one
    /// call. Returns how many, and whether there are more.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn prune(&self, retention: Retention) -> Result<(usize, bool), Error> {
        let mut answer = self
            .scripts
            .call(Verb::Prune)
            .arg(self.clock.argument())
            .arg(u64::try_from(retention.age.as_millis()).unwrap_or(u64::MAX >> 12))
            .arg(retention.count)
            .arg(MAX_ITEMS)
            .answer(&self.conn)
            .await?;
        Ok((answer.next("gone")?, answer.flag("more")?))
    }
}
