//! release: hand a job back at no cost.

use super::{Bananas, Claimed};
use crate::error::Error;
use crate::script::Verb;

/// Where a job goes that is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// To the list that it came from, as the next one.
    Next,
    /// To the list that it came from, as the last one.
    Last,
    /// Nowhere: it is done already, and somebody pushed its id twice.
    Nowhere,
}

impl Bananas {
    /// Hands a job back that is still this worker's. False if it is this worker's no more.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn release(&self, claimed: &Claimed, to: Back) -> Result<bool, Error> {
        let to = match to {
            Back::Next => "next",
            Back::Last => "last",
            Back::Nowhere => "nowhere",
        };
        let done: u8 = self
            .call(Verb::BananasRelease)
            .arg(claimed.id.as_slice())
            .arg(&claimed.token)
            .arg(to)
            .run(&self.conn)
            .await?;
        Ok(done == 1)
    }
}
