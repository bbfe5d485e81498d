//! promote: put jobs whose delay is over into their queues.

use std::time::Duration;

use super::MAX_ITEMS;
use crate::script::Verb;
use crate::{Broker, Error};

/// What was promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promoted {
    /// How many were due.
    pub due: usize,
    /// When the next one is due, if there is one.
    pub next: Option<Duration>,
}

impl Broker {
    /// Puts jobs whose delay is over at the end of their queues, at most [`MAX_ITEMS`] in one call.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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
