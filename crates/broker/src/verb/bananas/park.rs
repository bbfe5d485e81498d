//! park: wait for work on a connection of its own.

use std::time::Duration;

use super::Bananas;
use crate::error::Error;
use crate::verb::park::{Parking, park, parking, unpark};

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
        let feed = self.keys.feed(worker, list);
        park(parking, list, &feed, wait).await
    }

    /// Ends a wait on `parking`, if there is one.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn unpark(&self, parking: &Parking) -> Result<(), Error> {
        unpark(&self.conn, parking).await
    }
}
