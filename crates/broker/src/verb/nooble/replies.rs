//! replies: wait for answers on lists of one's own.

use std::time::Duration;

use redis::FromRedisValue;

use super::{Nooble, room_for};
use crate::error::Error;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// The most answers taken in one call.
const MOST: usize = 100;

/// What is left on a list where nobody waits any more: no answer.
const GIVEN_UP: &str = "given up";

type Popped = Option<(String, Vec<Vec<u8>>)>;

impl Nooble {
    /// Waits for answers on lists ([`MAX_ITEMS`] at most) and takes those that are there on the first of them that has
    /// any, oldest first. None if none came in time. A wait begins when those before it on its connection are over, which
    /// may take `before`. While the server stands still, it lasts longer: who must not wait so long drops it, and what
    /// comes until the server learns so is lost.
    ///
    /// # Errors
    /// If there are too many lists, the connection breaks, or a key is no list. Answers that were on their way are lost
    /// then: who waits for them is told when its time is up.
    pub async fn replies(
        &self,
        blocking: &BlockingConn,
        lists: &[String],
        wait: Duration,
        before: Duration,
    ) -> Result<Vec<Vec<u8>>, Error> {
        at_most("replies", MAX_ITEMS, lists.len())?;
        let mut cmd = room_for(lists.iter().map(String::len).sum());
        cmd.arg("BLMPOP");
        cmd.arg(wait.as_secs_f64()).arg(lists.len()).arg(lists);
        cmd.arg("RIGHT").arg("COUNT").arg(MOST);
        let value = blocking.call_to_its_end(self, "replies", &cmd, before + wait);
        let value = value.await?;
        let popped = Popped::from_redis_value(value).map_err(|error| Error::Call {
            verb: "replies",
            source: error.into(),
        })?;
        Ok(popped.map(|(_, messages)| messages).unwrap_or_default())
    }

    /// Leaves a word on a list that nobody reads any more: an answer that comes late ends with it, also one of a worker
    /// that gives its answers no end. False if who read the list has just taken it away; repeat it then.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn give_up_replies(&self, list: &str, ends: Duration) -> Result<bool, Error> {
        // Not as a transaction, in which it could not be seen that the word was taken.
        let mut both = redis::pipe();
        both.cmd("LPUSH").arg(list).arg(GIVEN_UP).ignore();
        both.cmd("PEXPIRE").arg(list).arg(ends.as_millis() as u64);
        let told = both.query_async(&mut self.conn.clone()).await;
        let (ends,): (bool,) =
            told.map_err(|source| Error::of_pipeline("give_up", &both, source))?;
        Ok(ends)
    }

    /// Forgets lists of answers: nobody waits there any more.
    ///
    /// # Errors
    /// If the server does not take the call; then they end by themselves.
    pub async fn forget_replies(&self, lists: &[String]) -> Result<(), Error> {
        self.ask("forget", redis::cmd("DEL").arg(lists)).await
    }
}
