//! release: releases a job without counting a run.

use meshwork_macros::boxed;
use meshwork_model::bananas::Status;

use super::{Bananas, Claimed, Found, push_draft};
use crate::error::Error;
use crate::script::Verb;

/// Destination of a released job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// The list that it came from, as the next one.
    Next,
    /// The list that it came from, as the last one.
    Last,
    /// No list: the job has completed already, and its id was pushed twice. The record is marked as completed.
    Nowhere,
}

impl Bananas {
    /// Releases a job under this worker's lease. Returns false if the lease was lost.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn release(&self, claimed: &Claimed, to: Requeue) -> Result<bool, Error> {
        let word = match to {
            Requeue::Next => "next",
            Requeue::Last => "last",
            Requeue::Nowhere => "nowhere",
        };
        let ended = match &claimed.found {
            Found::Job(record)
                if to == Requeue::Nowhere && record.status() != Some(Status::Completed) =>
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
