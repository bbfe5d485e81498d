//! renew, reclaim, promote, trim and leave: keep messages from being lost, run twice, or piling up.

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use super::report::hand;
use super::{Nooble, Received, Source};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Greatest duration of one wait for a message. A dead worker is watched for as long, because a message may arrive
/// for it until then.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// Time for which the in-flight messages of a dead worker of a list are kept for the next worker.
pub(super) const HAND_WAITS: Duration = Duration::from_secs(30 * 86_400);

/// The result of a reclaim.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Messages that now belong to this worker.
    pub messages: Vec<Received>,
    /// Position for the next call.
    pub next: String,
}

type Row = (String, u64, u32, Vec<Vec<u8>>);

impl Nooble {
    /// Registers a worker of a queue as alive for `alive`, and renews its in-flight messages, given by id and number
    /// of deliveries. Returns the ids of lost messages (of a stream; for a list, the report detects them). Messages
    /// of a list that are not renewed are kept for 30 days for a reclaim.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
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

    /// Reclaims up to `most` messages of Meshwork's workers whose registration has expired. For a stream, it also
    /// reclaims messages that were delivered `idle` ago to this worker without its knowledge, or to a worker that
    /// never registered. If `others` is given, it reclaims messages that were delivered this long ago to foreign
    /// workers, which do not register. For these, the answer's `next` is `from` in the next call, and `-` in the
    /// first. A worker that is not registered itself reclaims nothing.
    ///
    /// # Errors
    /// `most` exceeds [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
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
            // A group that does not exist has no deliveries.
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

    /// Requeues failed messages whose backoff is over. Returns their number, and the time until the next one is due.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn promote(&self, source: &Source) -> Result<(usize, Option<Duration>), Error> {
        let mut call = self.call(Verb::NooblePromote, source);
        call.push_key(&source.keys.delayed);
        call.push_arg(MAX_ITEMS);
        let mut answer = call.answer(&self.conn).await?;
        let (moved, next): (usize, f64) = (answer.next("moved")?, answer.next("next")?);
        let next = u64::try_from(next as i64).ok().map(Duration::from_millis);
        Ok((moved, next))
    }

    /// Deletes messages of a stream that all its groups have acknowledged, except those younger than `keep`. Forgets
    /// Meshwork's workers that have no in-flight messages and were last seen `gone` ago. Returns the number of
    /// deleted messages. A list has none to delete, and [`Self::reclaim`] forgets its workers. Removes a time to live
    /// of up to 30 days from the stream, which earlier versions set, because all its messages would expire with it.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
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

    /// Deregisters a worker that receives no more. Returns false if it has in-flight messages, which may then be
    /// reclaimed at once.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn deregister(&self, worker: &str, source: &Source) -> Result<bool, Error> {
        let mut call = self.call(Verb::NoobleDeregister, source);
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
