//! resolve_dependents: notifies the dependents of ended jobs.

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;
use meshwork_macros::boxed;

impl Broker {
    /// Notifies dependents that the script which ended a prerequisite did not notify, because they were too many: at
    /// most [`MAX_ITEMS`] in a call. Returns true if there are more.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn resolve_dependents(&self) -> Result<bool, Error> {
        let call = self.scripts.call(Verb::ResolveDependents);
        let call = call.arg(self.clock.argument()).arg(MAX_ITEMS);
        let mut answer = call.answer(&self.conn).await?;
        answer.next::<usize>("resolved")?;
        answer.flag("more")
    }
}
