//! step and store_reply: record the questions and answers of an orchestrator for a task, so that another one that
//! continues it asks nothing twice.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::nooble::Dialect;
use redis::FromRedisValue;

use super::Nooble;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::BlockingConn;

/// A step of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct SagaStep<'a> {
    /// The key of the cycle's steps.
    pub cycle: &'a str,
    /// Name of the step in the cycle.
    pub name: &'a str,
}

/// Limits of the record of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct CycleLimits {
    /// Time to live after the last step.
    pub stays: Duration,
    /// Greatest number of steps.
    pub steps: usize,
    /// Greatest total length of messages and answers, in bytes.
    pub bytes: usize,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    /// The action was sent.
    Sent,
    /// The action had been sent earlier; it was sent again.
    SentAgain {
        /// The message.
        message: String,
    },
    /// The action was sent earlier; no reply is stored.
    Pending {
        /// The message.
        message: String,
        /// Time since then.
        since: Duration,
    },
    /// The answer has arrived.
    Answered {
        /// The message that was sent.
        message: String,
        /// The answer.
        answer: String,
    },
    /// The record is full: nothing was changed.
    Full,
}

/// The result of storing an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredReply {
    /// This answer is stored: the first one that arrived.
    Stored(String),
    /// The record is full: nothing was changed.
    Full,
    /// The record of the step is gone: nothing was changed.
    Gone,
}

impl Nooble {
    /// Does a step: sends its action and records it, in one step. For an earlier step, it returns its state. If that
    /// was sent `again_after` ago and has no answer, its message is sent again.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn saga_step(
        &self,
        step: SagaStep<'_>,
        (queue, message): (&str, &str),
        again_after: Option<Duration>,
        room: CycleLimits,
    ) -> Result<StepResult, Error> {
        let of_streams = self.keys.dialect() == Dialect::Streams;
        let call = self.scripts.call(Verb::NoobleSagaStep);
        let call = call.key(step.cycle).key(queue);
        let call = call
            .arg(self.clock.argument())
            .arg(if of_streams { "stream" } else { "" })
            .arg(step.name)
            .arg(message)
            .arg(again_after.map_or(-1, |after| after.as_millis() as i64))
            .arg(room.stays.as_millis() as u64)
            .arg(room.steps)
            .arg(room.bytes);
        let mut read = call.answer(&self.conn).await?;
        let (status, message): (String, String) = (read.next("status")?, read.next("message")?);
        let (since, answer) = (read.next("since")?, read.next("answer")?);
        match status.as_str() {
            "sent" => Ok(StepResult::Sent),
            "again" => Ok(StepResult::SentAgain { message }),
            "waits" => Ok(StepResult::Pending {
                message,
                since: Duration::from_millis(since),
            }),
            "answered" => Ok(StepResult::Answered { message, answer }),
            "full" => Ok(StepResult::Full),
            _ => Err(Error::Answer {
                verb: "step",
                answer: status,
            }),
        }
    }

    /// Stores the answer to a step, and deletes the list on which it arrived.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn store_reply(
        &self,
        step: SagaStep<'_>,
        (list, answer): (&str, &str),
        room: CycleLimits,
    ) -> Result<StoredReply, Error> {
        let call = self.scripts.call(Verb::NoobleStoreReply);
        let call = call.key(step.cycle).key(list).arg(step.name).arg(answer);
        let call = call.arg(room.stays.as_millis() as u64).arg(room.bytes);
        let mut read = call.answer(&self.conn).await?;
        let (status, kept): (String, String) = (read.next("status")?, read.next("kept")?);
        match status.as_str() {
            "stored" => Ok(StoredReply::Stored(kept)),
            "full" => Ok(StoredReply::Full),
            "gone" => Ok(StoredReply::Gone),
            _ => Err(Error::Answer {
                verb: "store_reply",
                answer: status,
            }),
        }
    }

    /// Sets the time to live of a cycle's record.
    ///
    /// # Errors
    /// The server refuses the call; repeat it then.
    #[boxed]
    pub async fn end_cycle(&self, cycle: &str, stays: Duration) -> Result<(), Error> {
        let mut cmd = redis::cmd("PEXPIRE");
        self.ask("end_cycle", cmd.arg(cycle).arg(stays.as_millis() as u64))
            .await
    }

    /// Returns the oldest answer on a list without removing it, so that a crash loses nothing. Waits for it on
    /// `blocking`, if that is given; returns `None` after the timeout.
    ///
    /// # Errors
    /// The connection breaks, or the key is not a list.
    #[boxed]
    pub async fn peek(
        &self,
        list: &str,
        parked: Option<(&BlockingConn, Duration)>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some((blocking, wait)) = parked else {
            let mut cmd = redis::cmd("LRANGE");
            let last = self.ask::<Vec<Vec<u8>>>("peek", cmd.arg(list).arg(-1).arg(-1));
            return Ok(last.await?.pop());
        };
        // A move from the right end to the right end waits without changing the list.
        let mut cmd = redis::cmd("BLMOVE");
        cmd.arg(list).arg(list).arg("RIGHT").arg("RIGHT");
        cmd.arg(wait.as_secs_f64());
        let value = blocking.call("peek", &cmd, wait).await?;
        Option::from_redis_value(value).map_err(|error| Error::Call {
            verb: "peek",
            source: error.into(),
        })
    }

    /// Removes a message that is not an answer from a list.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn drop_reply(&self, list: &str, message: &[u8]) -> Result<(), Error> {
        let mut cmd = redis::cmd("LREM");
        self.ask("drop_reply", cmd.arg(list).arg(1).arg(message))
            .await
    }
}
