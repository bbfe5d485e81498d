//! renew, reclaim, promote, trim and leave: what keeps messages from being lost, run twice, or piling up.

use std::sync::Arc;
use std::time::Duration;

use super::report::hand;
use super::{Nooble, Received, Source};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// The longest that one wait for a message lasts. A worker that is gone is looked after for as long, since a message
/// may come to it until then.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// How long what a worker of a list had in hand waits for the next one, when it was killed.
pub(super) const HAND_WAITS: Duration = Duration::from_secs(30 * 86_400);

/// What was taken over.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Messages that are this worker's now.
    pub messages: Vec<Received>,
    /// Where to look from next time.
    pub next: String,
}

type Row = (String, u64, u32, Vec<Vec<u8>>);

impl Nooble {
    /// Says that a worker takes from a queue and is there for `alive`, and keeps what it has in hand: messages by id and how
    /// often they were given. Returns the ids of what is not its any more (of a stream; of a list, the report says so).
    /// What nobody renews any more, of a list, is kept for 30 days for who takes it over.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take the call.
    pub async fn renew(
        &self,
        worker: &str,
        source: &Source,
        held: &[(String, u64)],
        alive: Duration,
    ) -> Result<Vec<String>, Error> {
        at_most("renew", MAX_ITEMS, held.len())?;
        let mut call = self.call(Verb::NoobleRenew, source);
        call.push_key(&source.keys.workers);
        call.push_key(hand(source, worker));
        call.push_arg(worker);
        call.push_arg(alive.as_millis() as u64);
        call.push_arg(HAND_WAITS.as_millis() as u64);
        for (id, given) in held.iter().filter(|_| source.group.is_some()) {
            call.push_arg(id);
            call.push_arg(given);
        }
        call.run(&self.conn).await
    }

    /// Takes over up to `most` messages that workers of ours had in hand who were there for so long as they said. Of a stream,
    /// also what came to this worker without its knowledge, or to one that was never there, `idle` ago; and what came to
    /// workers of another make, if `others` is given, so long ago: these do not say that they are alive. For these, what
    /// is `next` in the answer is `from` in the next call, at first `-`. A worker that is not there itself takes nothing.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call.
    pub async fn reclaim(
        &self,
        worker: &str,
        source: &Arc<Source>,
        most: usize,
        (idle, others): (Duration, Option<Duration>),
        from: &str,
    ) -> Result<Reclaimed, Error> {
        at_most("reclaim", MAX_ITEMS, most)?;
        let mut call = self.call(Verb::NoobleReclaim, source);
        call.push_key(hand(source, worker));
        call.push_key(&source.keys.workers);
        call.push_arg(worker);
        call.push_arg(most);
        call.push_arg(idle.as_millis() as u64);
        call.push_arg(others.map_or(-1, |age| age.as_millis() as i64));
        call.push_arg(from);
        call.push_arg(MAX_WAIT.as_millis() as u64);
        call.push_arg(&source.keys.tries);
        call.push_arg(&source.keys.processing);
        call.push_arg(HAND_WAITS.as_millis() as u64);
        let (rows, next): (Vec<Row>, String) = match call.answer(&self.conn).await {
            // Nothing was given to a group that is not there.
            Err(Error::Call { source: error, .. }) if is_no_group(&error) => {
                self.prepare(source).await?;
                Default::default()
            }
            answer => {
                let mut answer = answer?;
                (answer.next("messages")?, answer.next("next")?)
            }
        };
        let received =
            |(id, given, lost, fields): Row| Received::new(source, id, (given, lost), fields);
        Ok(Reclaimed {
            messages: rows.into_iter().map(received).collect(),
            next: if next.is_empty() {
                "-".to_owned()
            } else {
                next
            },
        })
    }

    /// Puts back what failed and whose pause is over. Returns how many, and when the next one is due.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn promote(&self, source: &Source) -> Result<(usize, Option<Duration>), Error> {
        let mut call = self.call(Verb::NooblePromote, source);
        call.push_key(&source.keys.delayed);
        call.push_arg(MAX_ITEMS);
        let mut answer = call.answer(&self.conn).await?;
        let (moved, next): (usize, f64) = (answer.next("moved")?, answer.next("next")?);
        let next = u64::try_from(next as i64).ok().map(Duration::from_millis);
        Ok((moved, next))
    }

    /// Deletes from a stream what all its groups have done with, except what is younger than `keep`; and forgets
    /// workers of ours that have nothing in hand and were not heard of for `gone`. Returns how many messages it
    /// deleted; of a list there is nothing to delete, and [`Self::reclaim`] forgets its workers. Takes an end of 30 days
    /// or less off the stream, which earlier versions set: all its messages would go with it.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn trim(
        &self,
        source: &Source,
        keep: Duration,
        gone: Duration,
    ) -> Result<usize, Error> {
        if source.group.is_none() {
            return Ok(0);
        }
        let call = self.scripts.call(Verb::NoobleTrim).key(source.queue());
        let call = call.arg(self.clock.argument()).arg(keep.as_millis() as u64);
        let call = call.arg(source.group()).arg(gone.as_millis() as u64);
        let call = call.arg(HAND_WAITS.as_millis() as u64);
        call.run(&self.conn).await
    }

    /// Forgets a worker that takes no more. False if it has something in hand: that is taken over at once.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn leave(&self, worker: &str, source: &Source) -> Result<bool, Error> {
        let mut call = self.call(Verb::NoobleLeave, source);
        call.push_key(hand(source, worker));
        call.push_key(&source.keys.workers);
        call.push_arg(worker);
        call.push_arg(HAND_WAITS.as_millis() as u64);
        Ok(call.run::<u8>(&self.conn).await? == 1)
    }
}

fn is_no_group(error: &redis::RedisError) -> bool {
    error.code() == Some("NOGROUP") || error.to_string().contains("NOGROUP")
}
