//! complete and fail: report the outcome of a run.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::bananas::Draft;

use super::{Answered, Bananas, Claimed, Found, push_draft};
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::{MAX_ITEMS, at_most};

/// Number of tries of a report whose record another program changes meanwhile. None of Bananas' programs changes the
/// record of a running job more than once.
pub(super) const MOST_TRIES: usize = 5;

/// A successful run.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    /// The job, with its token.
    pub claimed: &'a Claimed,
    /// Result as JSON, if there is one.
    pub result: Option<&'a str>,
    /// Duration of the run.
    pub took: Duration,
}

/// The result of reporting a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// Record and result are stored, and waiting clients were notified.
    Finished,
    /// This worker has lost the lease; nothing was changed.
    Stale,
}

/// The result of reporting a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The job is retried after this backoff.
    Again(Duration),
    /// The job is a dead letter.
    Dead,
    /// This worker has lost the lease; nothing was changed.
    Stale,
}

impl Bananas {
    /// Completes jobs with their results, each if this worker still has the lease. In one step, the record becomes
    /// `completed`, the result is stored, and waiting clients are notified. Returns the result of each, in order.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses a call; repeat it then. Jobs that have completed are
    /// then reported as stale.
    #[boxed]
    pub async fn complete(&self, ended: &[Completion<'_>]) -> Result<Vec<Completed>, Error> {
        at_most("complete", MAX_ITEMS, ended.len())?;
        let mut found: Vec<_> = ended.iter().map(|one| one.claimed.found.clone()).collect();
        let mut outcomes = vec![Completed::Stale; ended.len()];
        let mut left: Vec<usize> = (0..ended.len()).collect();
        for _ in 0..MOST_TRIES {
            if left.is_empty() {
                break;
            }
            let words = self.complete_once(ended, &found, &left).await?;
            let mut changed = Vec::new();
            for (at, word) in left.into_iter().zip(words) {
                match word.as_str() {
                    "finished" => outcomes[at] = Completed::Finished,
                    "stale" => {}
                    _ => {
                        found[at] = self.look(&ended[at].claimed.id).await?;
                        changed.push(at);
                    }
                }
            }
            left = changed;
        }
        match left.first() {
            Some(at) => Err(changing("complete", ended[*at].claimed)),
            None => Ok(outcomes),
        }
    }

    /// Makes one call for the remaining jobs.
    async fn complete_once(
        &self,
        ended: &[Completion<'_>],
        found: &[Found],
        left: &[usize],
    ) -> Result<Vec<String>, Error> {
        let mut call = self.call(Verb::BananasComplete);
        call.push_arg(left.len());
        for at in left {
            let (one, found) = (&ended[*at], &found[*at]);
            push_report(&mut call, one.claimed, found, one.took);
            call.push_arg(one.result.unwrap_or_default());
            let record = match found {
                Found::Job(record) => Some(record.completed()),
                _ => None,
            };
            push_draft(&mut call, record.as_ref());
        }
        call.run(&self.conn).await
    }

    /// Reports a failed run, if this worker still has the lease. The job is retried after 2^failures seconds if
    /// `again` is set and its record allows it (`most_runs` by default); else it becomes a dead letter. An invalid
    /// job becomes one at once.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
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
            let mut call = self.call(Verb::BananasFail);
            push_report(&mut call, claimed, &found, took);
            call.push_arg(error);
            call.push_arg(pause.map_or(-1, |pause| pause.as_millis() as i64));
            push_draft(&mut call, record.as_ref());
            let answer: Answered = call.run(&self.conn).await?;
            match answer.word.as_str() {
                "failed" => return Ok(pause.map_or(Failed::Dead, Failed::Again)),
                "dead" => return Ok(Failed::Dead),
                "stale" => return Ok(Failed::Stale),
                _ => found = answer.found,
            }
        }
        Err(changing("fail", claimed))
    }
}

/// Pushes the common arguments of reports: the lease, and the record that they change.
fn push_report(call: &mut Call<'_>, claimed: &Claimed, found: &Found, took: Duration) {
    call.push_arg(claimed.hold.as_slice());
    call.push_arg(&claimed.token);
    call.push_arg(found.digest());
    call.push_arg(took.as_millis() as u64);
}

/// Returns the record after a failure, and the backoff, if there is a retry.
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
