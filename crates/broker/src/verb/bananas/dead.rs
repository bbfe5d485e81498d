//! replay and forget: retries or deletes a dead letter.

use meshwork_macros::boxed;
use meshwork_model::bananas::{ClientVariant, Status};

use super::report::MOST_TRIES;
use super::{Answered, Bananas, Found, push_draft};
use crate::error::Error;
use crate::script::Verb;

/// The result of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetriedDead {
    /// The job is in the list of its route, with no failures.
    Queued,
    /// The id is no dead letter.
    Missing,
    /// The dead letter stays, because its record is not that of a failure: the job was queued again already.
    Unfinished,
    /// The dead letter stays, because its record is missing or unreadable.
    NoRecord,
}

impl Bananas {
    /// Retries a dead letter: moves it to the list to which `variant` pushes jobs of its route, with no failures. Its
    /// result, which has the failure, is deleted. `found` is the inspected record; a changed one is read again.
    ///
    /// # Errors
    /// The server refuses the call, or the record changes all the time; repeat the call then.
    #[boxed]
    pub async fn retry_dead(
        &self,
        id: &str,
        found: &Found,
        variant: ClientVariant,
    ) -> Result<RetriedDead, Error> {
        let mut found = found.clone();
        for _ in 0..MOST_TRIES {
            let record = match &found {
                // A replacement of an unreadable record has no handler.
                Found::Job(record) if !record.name().is_empty() => record,
                _ if self.is_dead(id).await? => return Ok(RetriedDead::NoRecord),
                _ => return Ok(RetriedDead::Missing),
            };
            if record.status() != Some(Status::Failed) {
                return Ok(match self.is_dead(id).await? {
                    true => RetriedDead::Unfinished,
                    false => RetriedDead::Missing,
                });
            }
            let route = record.route().unwrap_or_default();
            let mut call = self.call(Verb::BananasRetryDead);
            call.push_key(variant.list(&self.keys, &route, record.priority()));
            call.push_arg(id);
            call.push_arg(found.digest());
            push_draft(&mut call, Some(&record.replayed()));
            let answer: Answered = call.run(&self.conn).await?;
            match answer.word.as_str() {
                "queued" => return Ok(RetriedDead::Queued),
                "missing" => return Ok(RetriedDead::Missing),
                _ => found = answer.found,
            }
        }
        Err(changing("replay", id))
    }

    /// Deletes a dead letter, with its result and its record. The latter two stay if the record is not that of a
    /// failure. Returns false if the id is not a dead letter. `found` is the inspected record; a changed one is read
    /// again.
    ///
    /// # Errors
    /// The server refuses the call, or the record changes all the time; repeat the call then.
    #[boxed]
    pub async fn delete_dead(&self, id: &str, found: &Found) -> Result<bool, Error> {
        let mut found = found.clone();
        for _ in 0..MOST_TRIES {
            let runs_again = match &found {
                Found::Job(record) => !matches!(record.status(), Some(Status::Failed) | None),
                // A key of another type is not a record.
                Found::Odd => true,
                Found::Corrupt(..) | Found::Missing => false,
            };
            let mut call = self.call(Verb::BananasDeleteDead).arg(id);
            call.push_arg(match runs_again {
                true => String::new(),
                false => found.digest(),
            });
            let answer: Answered = call.run(&self.conn).await?;
            match answer.word.as_str() {
                "deleted" => return Ok(true),
                "missing" => return Ok(false),
                _ => found = answer.found,
            }
        }
        Err(changing("forget", id))
    }

    /// Returns whether an id is a dead letter.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn is_dead(&self, id: &str) -> Result<bool, Error> {
        let mut find = redis::cmd("LPOS");
        find.arg(self.keys.dead()).arg(id);
        let place = find.query_async(&mut self.conn.clone()).await;
        let place: Option<u64> = place.map_err(super::inspect::failed("is_dead"))?;
        Ok(place.is_some())
    }
}

fn changing(verb: &'static str, id: &str) -> Error {
    Error::Answer {
        verb,
        answer: format!("that the record of {id} changes all the time"),
    }
}
