//! complete, fail and release: report the outcome of a run.

use meshwork_macros::boxed;
use std::borrow::Cow;
use std::time::Duration;

use super::{Nooble, Received, Source};
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::sha1;

/// A message that answers, and its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The list.
    pub list: &'a str,
    /// The message.
    pub message: &'a str,
    /// Least time for which it waits for a reader; `None` for a list whose messages do not expire.
    pub waits: Option<Duration>,
}

/// The consequences of an action's end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Completion<'a> {
    /// The answer, if one was requested.
    pub answer: Option<Answer<'a>>,
    /// Key of the pending callback's record, which ends with this action.
    pub pending_callback: Option<&'a str>,
}

/// A failed run.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// Error message. Empty if the message does not become a dead letter, because the caller gets the error.
    pub error: &'a str,
    /// Greatest number of runs; at 1 and below, this was the last one.
    pub most_runs: u32,
    /// Backoff after the first failure. It doubles with each further one.
    pub pause: Duration,
    /// Greatest backoff.
    pub longest_pause: Duration,
    /// Unique token of this call, without blanks.
    pub token: &'a str,
}

/// The result of reporting a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The answer was sent, and the message removed from its queue.
    Finished,
    /// The message was removed, but the answer was dropped, because its key is not a list.
    Unanswered,
    /// The message has ended already, or (of a list) belongs to another worker: nothing was changed.
    Stale,
}

/// The result of reporting a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The action is retried after a backoff; this many runs have failed.
    Again(u32),
    /// The message is a dead letter, and the error was sent; this many runs have failed.
    Failed(u32),
    /// The message is a dead letter, but the error was dropped, because its key is not a list.
    Unanswered(u32),
    /// The message belongs to another worker: nothing was changed.
    Stale,
}

impl Nooble {
    /// Ends a successful action in one step: sends the answer and acknowledges the message. The message must not have
    /// ended, and (of a list) must belong to this worker.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn complete(
        &self,
        worker: &str,
        of: &Received,
        end: Completion<'_>,
    ) -> Result<Completed, Error> {
        let which = match of.id.is_empty() {
            true => of.bytes(),
            // A stream identifies its message by the id.
            false => of.id.as_bytes(),
        };
        let call = self.scripts.call(Verb::NoobleComplete);
        let call = call.key(hand(&of.source, worker));
        let mut call = call.arg(of.source.group()).arg(which);
        self.push_end(&mut call, of, end);
        call.push_key(end.pending_callback);
        let status: String = call.run(&self.conn).await?;
        match status.as_str() {
            "finished" => Ok(Completed::Finished),
            "unanswered" => Ok(Completed::Unanswered),
            "stale" => Ok(Completed::Stale),
            _ => Err(unknown("complete", status)),
        }
    }

    /// Reports a failed run, if its message belongs to this worker. The action is retried after a backoff, or becomes
    /// a dead letter with the consequences in `end`.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn fail(
        &self,
        worker: &str,
        of: &Received,
        failure: Failure<'_>,
        end: Completion<'_>,
    ) -> Result<Failed, Error> {
        let mut call = self.report(Verb::NoobleFail, worker, of);
        self.push_end(&mut call, of, end);
        call.push_key(tries_of(of));
        call.push_key(&of.source.keys.delayed);
        call.push_key(&of.source.keys.dead);
        call.push_key(end.pending_callback);
        call.push_arg(failure.most_runs);
        call.push_arg(failure.pause.as_millis() as u64);
        call.push_arg(failure.longest_pause.as_millis() as u64);
        call.push_arg(failure.error);
        call.push_arg(failure.token);
        let mut answer = call.answer(&self.conn).await?;
        let (status, runs): (String, u32) = (answer.next("status")?, answer.next("runs")?);
        match status.as_str() {
            "again" => Ok(Failed::Again(runs)),
            "failed" => Ok(Failed::Failed(runs)),
            "unanswered" => Ok(Failed::Unanswered(runs)),
            "stale" => Ok(Failed::Stale),
            _ => Err(unknown("fail", status)),
        }
    }

    /// Releases a message to its queue without counting a run. Returns false if the message belongs to another
    /// worker.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn release(&self, worker: &str, of: &Received) -> Result<bool, Error> {
        let call = self.report(Verb::NoobleRelease, worker, of);
        Ok(call.run::<u8>(&self.conn).await? == 1)
    }

    fn report(&self, verb: Verb, worker: &str, of: &Received) -> Call<'_> {
        let call = self.call(verb, &of.source);
        call.key(hand(&of.source, worker))
            .arg(worker)
            .arg(&of.id)
            .arg(of.given)
            .arg(of.bytes())
    }

    fn push_end(&self, call: &mut Call<'_>, of: &Received, end: Completion<'_>) {
        let queue = of.source.queue();
        call.push_key(end.answer.map_or(queue, |answer| answer.list));
        call.push_arg(end.answer.map_or("", |answer| answer.message));
        let waits = end.answer.and_then(|answer| answer.waits);
        call.push_arg(waits.map_or(0, |waits| waits.as_millis() as u64));
    }
}

/// Returns the list of a worker's in-flight messages of a list. A stream has none, and its own key is returned.
pub(super) fn hand<'a>(source: &'a Source, worker: &str) -> Cow<'a, str> {
    match source.group {
        Some(_) => source.queue().into(),
        None => source.keys.processing_of(worker).into(),
    }
}

/// Returns the key that counts a message's failed and lost runs.
pub(super) fn tries_of(of: &Received) -> String {
    [of.source.keys.tries.as_str(), &sha1(of.bytes())].concat()
}

fn unknown(verb: &'static str, answer: String) -> Error {
    Error::Answer { verb, answer }
}
