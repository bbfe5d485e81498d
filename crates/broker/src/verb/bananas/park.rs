//! park: wait for work on a connection of its own.

use std::time::Duration;

use redis::Value;

use super::Bananas;
use crate::error::Error;
use crate::verb::park::{MAX_WAIT, Parking, parking, unpark, waited};

impl Bananas {
    /// Makes a connection to wait on.
    ///
    /// # Errors
    /// If the server does not let us.
    pub async fn parking(&self) -> Result<Parking, Error> {
        parking(&self.conn).await
    }

    /// Waits until an id comes to `list` and moves it into the worker's feed list for it, where
    /// [`Bananas::claim`] finds it. Wakes one waiting worker, and sees what any client pushes. False if none came in
    /// time, which is 30 seconds at the longest.
    ///
    /// # Errors
    /// If the connection breaks, or the list is none.
    pub async fn park(
        &self,
        parking: &Parking,
        worker: &str,
        list: &str,
        wait: Duration,
    ) -> Result<bool, Error> {
        let wait = wait.min(MAX_WAIT);
        let mut cmd = redis::cmd("BLMOVE");
        cmd.arg(list)
            .arg(self.keys.feed(worker, list))
            .arg("RIGHT")
            .arg("LEFT")
            .arg(wait.as_secs_f64());
        Ok(waited("park", &parking.conn, cmd, wait).await? != Value::Nil)
    }

    /// Ends a wait on `parking`, if there is one.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn unpark(&self, parking: &Parking) -> Result<(), Error> {
        unpark(&self.conn, parking).await
    }
}
