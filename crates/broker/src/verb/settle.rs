//! settle: tell jobs that wait for others what became of them.

use super::MAX_ITEMS;
use crate::script::Verb;
use crate::{Broker, Error};

impl Broker {
    /// Tells the jobs that the script that ended a prerequisite had no room to tell: at most [`MAX_ITEMS`]
    /// in one call. True if there are more.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn settle(&self) -> Result<bool, Error> {
        let call = self.scripts.call(Verb::Settle);
        let call = call.arg(self.clock.argument()).arg(MAX_ITEMS);
        let mut answer = call.answer(&self.conn).await?;
        answer.next::<usize>("told")?;
        answer.flag("more")
    }
}
