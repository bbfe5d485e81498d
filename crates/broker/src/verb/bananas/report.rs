//! finish and fail: how a run ended.

use std::time::Duration;

use meshwork_model::bananas::Draft;

use super::{Answered, Bananas, Claimed, Found, push_draft};
use crate::error::Error;
use crate::script::{Call, Verb};

/// So often a report is said anew because somebody else has changed the record meanwhile. None of Bananas' programs
/// changes the record of a job that runs more than once.
const MOST_TRIES: usize = 5;

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Record and result say so, and those who wait were told.
    Finished,
    /// The job is not this worker's any more: nothing was changed.
    Stale,
}

/// What became of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The job runs again after a pause.
    Again(Duration),
    /// It is a dead letter.
    Dead,
    /// The job is not this worker's any more: nothing was changed.
    Stale,
}

impl Bananas {
    /// Ends a job with its result (JSON, if it gave any), if it is still this worker's: the record says `completed`,
    /// the result stands where clients look for it, and those who wait are told, in one step.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn finish(
        &self,
        claimed: &Claimed,
        result: Option<&str>,
        took: Duration,
    ) -> Result<Finished, Error> {
        let mut found = claimed.found.clone();
        for _ in 0..MOST_TRIES {
            let mut call = self.report(Verb::BananasFinish, claimed, &found, took);
            call.push_arg(result.unwrap_or_default());
            let record = match &found {
                Found::Job(record) => Some(record.completed()),
                _ => None,
            };
            push_draft(&mut call, record.as_ref());
            let answer: Answered = call.run(&self.conn).await?;
            match answer.word.as_str() {
                "finished" => return Ok(Finished::Finished),
                "stale" => return Ok(Finished::Stale),
                _ => found = answer.found,
            }
        }
        Err(changing("finish", claimed))
    }

    /// Reports a run that failed, if the job is still this worker's. It runs again after 2^failures seconds while
    /// `again` says that this may help and its record allows it (`most_runs` where it does not say), else it becomes
    /// a dead letter. What is no job becomes one at once.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn fail(
        &self,
        claimed: &Claimed,
        error: &str,
        again: bool,
        most_runs: u32,
        took: Duration,
    ) -> Result<Failed, Error> {
        let mut found = claimed.found.clone();
        for _ in 0..MOST_TRIES {
            let (record, pause) = failed(&found, &claimed.id, error, again, most_runs);
            let mut call = self.report(Verb::BananasFail, claimed, &found, took);
            call.push_arg(error);
            call.push_arg(pause.map_or(-1, |pause| pause.as_millis() as i64));
            push_draft(&mut call, record.as_ref());
            let answer: Answered = call.run(&self.conn).await?;
            match answer.word.as_str() {
                "failed" => return Ok(pause.map_or(Failed::Dead, Failed::Again)),
                "stale" => return Ok(Failed::Stale),
                _ => found = answer.found,
            }
        }
        Err(changing("fail", claimed))
    }

    fn report(&self, verb: Verb, claimed: &Claimed, found: &Found, took: Duration) -> Call<'_> {
        self.call(verb)
            .arg(claimed.id.as_slice())
            .arg(&claimed.token)
            .arg(found.digest())
            .arg(took.as_millis() as u64)
    }
}

/// The record after a failure, and the pause before the next run, if there is one.
fn failed(
    found: &Found,
    id: &[u8],
    error: &str,
    again: bool,
    most_runs: u32,
) -> (Option<Draft>, Option<Duration>) {
    let Found::Job(record) = found else {
        return (found.epitaph(id), None);
    };
    let most = record.max_retries().unwrap_or(most_runs);
    let again = again && record.attempts().saturating_add(1) < most;
    let (draft, pause) = record.failed(error, again);
    (Some(draft), pause)
}

fn changing(verb: &'static str, claimed: &Claimed) -> Error {
    Error::Answer {
        verb,
        answer: format!("that the record of {} changes all the time", claimed.id()),
    }
}
