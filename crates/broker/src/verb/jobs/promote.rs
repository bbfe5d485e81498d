//! promote: moves delayed jobs that are due to their queues.

use meshwork_macros::boxed;
use std::time::Duration;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;

/// The result of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promoted {
    /// Number of jobs that were due.
    pub due: usize,
    /// Time until the next delayed job is due, if there is one.
    pub next: Option<Duration>,
}

impl Broker {
    /// Moves delayed jobs that are due to the ends of their queues, at most [`MAX_ITEMS`] in a call.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn promote(&self) -> Result<Promoted, Error> {
        let call = self.scripts.call(Verb::Promote);
        let call = call.arg(self.clock.argument()).arg(MAX_ITEMS);
        let mut answer = call.answer(&self.conn).await?;
        Ok(Promoted {
            due: answer.next("due")?,
            next: answer.millis("next")?,
        })
    }
}
