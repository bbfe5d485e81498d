//! replies: waits for answers on the caller's own lists.

use meshwork_macros::boxed;
use std::time::Duration;

use redis::FromRedisValue;

use super::{Nooble, room_for};
use crate::error::Error;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// Greatest number of answers in a call.
const MOST: usize = 100;

/// Marker on a list without readers. It is not an answer.
const GIVEN_UP: &str = "given up";

type Popped = Option<(String, Vec<Vec<u8>>)>;

impl Nooble {
    /// Waits for answers on up to [`MAX_ITEMS`] lists, and removes those on the first list that has any, oldest
    /// first. Returns `None` after the timeout. A wait begins after the earlier ones on its connection, which may
    /// take `before`. While the server hangs, the wait takes longer. A caller that drops it loses answers that arrive
    /// before the server notices.
    ///
    /// # Errors
    /// There are too many lists, the connection breaks, or a key is not a list. Answers in transit are lost then:
    /// their callers time out.
    #[boxed]
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

    /// Pushes a marker with a time to live to a list without readers, so that late answers expire with it. This
    /// includes answers of workers that set no time to live. Returns false if the former reader has just removed the
    /// marker; repeat the call then.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn expire_replies(&self, list: &str, ends: Duration) -> Result<bool, Error> {
        // In a transaction, a removed marker could not be noticed.
        let mut both = redis::pipe();
        both.cmd("LPUSH").arg(list).arg(GIVEN_UP).ignore();
        both.cmd("PEXPIRE").arg(list).arg(ends.as_millis() as u64);
        let answer = both.query_async(&mut self.conn.clone()).await;
        let (ends,): (bool,) =
            answer.map_err(|source| Error::of_pipeline("give_up", &both, source))?;
        Ok(ends)
    }

    /// Deletes reply lists without readers.
    ///
    /// # Errors
    /// The server refuses the call; the lists then expire.
    #[boxed]
    pub async fn delete_replies(&self, lists: &[String]) -> Result<(), Error> {
        self.ask("forget", redis::cmd("DEL").arg(lists)).await
    }
}
