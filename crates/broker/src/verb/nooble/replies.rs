//! replies: wait for answers on a list of one's own.

use std::time::Duration;

use redis::FromRedisValue;

use super::Nooble;
use crate::error::Error;
use crate::verb::park::{Parking, waited};

/// The most answers taken in one call.
const MOST: usize = 100;

type Popped = Option<(String, Vec<Vec<u8>>)>;

impl Nooble {
    /// Waits for answers on a list and takes those that are there, oldest first. None if none came in time.
    ///
    /// # Errors
    /// If the connection breaks, or the key is no list. Answers that were on their way are lost then: who waits for
    /// them is told when its time is up.
    pub async fn replies(
        &self,
        parking: &Parking,
        list: &str,
        wait: Duration,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut cmd = redis::cmd("BLMPOP");
        cmd.arg(wait.as_secs_f64()).arg(1).arg(list);
        cmd.arg("RIGHT").arg("COUNT").arg(MOST);
        let value = waited("replies", &parking.conn, cmd, wait).await?;
        let popped = Popped::from_redis_value(value).map_err(|error| Error::Call {
            verb: "replies",
            source: error.into(),
        })?;
        Ok(popped.map(|(_, messages)| messages).unwrap_or_default())
    }

    /// Forgets a list of answers: nobody waits there any more.
    ///
    /// # Errors
    /// If the server does not take the call; then it ends by itself.
    pub async fn forget_replies(&self, list: &str) -> Result<(), Error> {
        self.ask("forget", redis::cmd("DEL").arg(list)).await
    }
}
