//! release: hand a job back at no cost.

use meshwork_model::bananas::Status;

use super::{Bananas, Claimed, Found, push_draft};
use crate::error::Error;
use crate::script::Verb;

/// Where a job goes that is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// To the list that it came from, as the next one.
    Next,
    /// To the list that it came from, as the last one.
    Last,
    /// Nowhere: it is done already, and somebody pushed its id twice. Its record says so then.
    Nowhere,
}

impl Bananas {
    /// Hands a job back that is still this worker's. False if it is this worker's no more.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn release(&self, claimed: &Claimed, to: Back) -> Result<bool, Error> {
        let word = match to {
            Back::Next => "next",
            Back::Last => "last",
            Back::Nowhere => "nowhere",
        };
        let ended = match &claimed.found {
            Found::Job(record)
                if to == Back::Nowhere && record.status() != Some(Status::Completed) =>
            {
                Some(record.completed())
            }
            _ => None,
        };
        let mut call = self
            .call(Verb::BananasRelease)
            .arg(claimed.hold.as_slice())
            .arg(&claimed.token)
            .arg(word)
            .arg(claimed.found.digest());
        push_draft(&mut call, ended.as_ref());
        let done: u8 = call.run(&self.conn).await?;
        Ok(done == 1)
    }
}
