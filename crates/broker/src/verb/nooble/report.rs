//! finish, fail and release: how a run ended, and what is told of it.

use std::borrow::Cow;
use std::time::Duration;

use super::{Nooble, Received, Source};
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::sha1;

/// A message that answers, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The list.
    pub list: &'a str,
    /// The message.
    pub message: &'a str,
    /// For how long it waits there at least, if nobody comes; None for a list whose messages wait without an end.
    pub waits: Option<Duration>,
}

/// What is told when an action ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct End<'a> {
    /// The answer, if one is asked for.
    pub answer: Option<Answer<'a>>,
    /// The key of the record of what was asked for, which is over with it (a callback's).
    pub asked: Option<&'a str>,
}

/// A run that failed.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// Why, in words; empty if the message is to be no dead letter, since who asked for it is told.
    pub error: &'a str,
    /// The most runs that the message gets; at 1 and below, this was the last one.
    pub most_runs: u32,
    /// The pause after the first failure; each one after is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// A word without blanks that no other call has, ever.
    pub token: &'a str,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is told, and the message gone from its queue.
    Finished,
    /// The same, but what was to take the answer is no list: it went nowhere.
    Unanswered,
    /// The message is over already, or of a list and not this worker's any more: nothing was changed.
    Stale,
}

/// What became of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The action runs again after a pause; so many runs of it have failed.
    Again(u32),
    /// It is a dead letter, and its failure is told; so many runs of it have failed.
    Failed(u32),
    /// The same, but what was to take the answer is no list.
    Unanswered(u32),
    /// The message is not this worker's any more: nothing was changed.
    Stale,
}

impl Nooble {
    /// Ends an action that went well, if its message is not over, and of a list still this worker's: the answer and the
    /// acknowledgement are one step.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn finish(
        &self,
        worker: &str,
        of: &Received,
        end: End<'_>,
    ) -> Result<Finished, Error> {
        let which = match of.id.is_empty() {
            true => of.bytes(),
            // A stream knows its message by the id.
            false => of.id.as_bytes(),
        };
        let call = self.scripts.call(Verb::NoobleFinish);
        let call = call.key(hand(&of.source, worker));
        let mut call = call.arg(of.source.group()).arg(which);
        self.push_end(&mut call, of, end);
        call.push_key(end.asked);
        let told: String = call.run(&self.conn).await?;
        match told.as_str() {
            "finished" => Ok(Finished::Finished),
            "unanswered" => Ok(Finished::Unanswered),
            "stale" => Ok(Finished::Stale),
            _ => Err(unknown("finish", told)),
        }
    }

    /// Reports a run that failed, if its message is still this worker's: it runs again after a pause, or it becomes
    /// a dead letter, and `end` is told.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn fail(
        &self,
        worker: &str,
        of: &Received,
        failure: Failure<'_>,
        end: End<'_>,
    ) -> Result<Failed, Error> {
        let mut call = self.report(Verb::NoobleFail, worker, of);
        self.push_end(&mut call, of, end);
        call.push_key(tries_of(of));
        call.push_key(&of.source.keys.delayed);
        call.push_key(&of.source.keys.dead);
        call.push_key(end.asked);
        call.push_arg(failure.most_runs);
        call.push_arg(failure.pause.as_millis() as u64);
        call.push_arg(failure.longest_pause.as_millis() as u64);
        call.push_arg(failure.error);
        call.push_arg(failure.token);
        let mut answer = call.answer(&self.conn).await?;
        let (told, runs): (String, u32) = (answer.next("told")?, answer.next("runs")?);
        match told.as_str() {
            "again" => Ok(Failed::Again(runs)),
            "failed" => Ok(Failed::Failed(runs)),
            "unanswered" => Ok(Failed::Unanswered(runs)),
            "stale" => Ok(Failed::Stale),
            _ => Err(unknown("fail", told)),
        }
    }

    /// Hands a message back to its queue at no cost. False if it is not this worker's any more.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
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

    fn push_end(&self, call: &mut Call<'_>, of: &Received, end: End<'_>) {
        let queue = of.source.queue();
        call.push_key(end.answer.map_or(queue, |answer| answer.list));
        call.push_arg(end.answer.map_or("", |answer| answer.message));
        let waits = end.answer.and_then(|answer| answer.waits);
        call.push_arg(waits.map_or(0, |waits| waits.as_millis() as u64));
    }
}

/// The list of what a worker has in hand of another list; of a stream there is none, and the stream stands there.
pub(super) fn hand<'a>(source: &'a Source, worker: &str) -> Cow<'a, str> {
    match source.group {
        Some(_) => source.queue().into(),
        None => source.keys.processing_of(worker).into(),
    }
}

/// The key of a message's failed and lost runs.
pub(super) fn tries_of(of: &Received) -> String {
    [of.source.keys.tries.as_str(), &sha1(of.bytes())].concat()
}

fn unknown(verb: &'static str, answer: String) -> Error {
    Error::Answer { verb, answer }
}
