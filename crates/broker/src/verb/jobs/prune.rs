//! prune: deletes old ended jobs.

use meshwork_macros::boxed;
use std::time::Duration;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;

/// Retention of ended jobs. Dead letters are excluded: they stay until somebody deletes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Greatest age since their end.
    pub age: Duration,
    /// Greatest number; the oldest are deleted first.
    pub count: usize,
}

impl Default for Retention {
    /// 7 days, and 100,000 jobs.
    fn default() -> Self {
        Self {
            age: Duration::from_secs(7 * 24 * 3600),
            count: 100_000,
        }
    }
}

impl Broker {
    /// Deletes ended jobs beyond `retention` with their replies and logs, at most [`MAX_ITEMS`] in a call. Returns
    /// their number, and whether there are more.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
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
