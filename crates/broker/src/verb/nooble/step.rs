//! step and keep_answer: what an orchestrator has asked for a task, and what it was answered, so that another one that
//! goes on with it asks nothing twice.

use std::time::Duration;

use meshwork_model::keys::nooble::Dialect;
use redis::FromRedisValue;

use super::Nooble;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::BlockingConn;

/// A step of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The key of the cycle's steps.
    pub cycle: &'a str,
    /// The step's name in it.
    pub name: &'a str,
}

/// How much of a cycle is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// From the last step on.
    pub stays: Duration,
    /// The most steps.
    pub steps: usize,
    /// The most bytes of all messages and answers.
    pub bytes: usize,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    /// Its action was sent.
    Asked,
    /// Its action was sent before, and is sent again.
    Again {
        /// The message.
        message: String,
    },
    /// Its action was sent before.
    Waits {
        /// The message.
        message: String,
        /// How long ago.
        since: Duration,
    },
    /// It has its answer.
    Answered {
        /// What was sent.
        message: String,
        /// What came.
        answer: String,
    },
    /// There is no room for it: nothing was changed.
    Full,
}

/// What became of an answer to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// This one is kept: the first that came.
    Kept(String),
    /// There is no room for it: nothing was changed.
    Full,
    /// The step is forgotten: nothing was changed.
    Gone,
}

impl Nooble {
    /// Takes a step: sends its action and notes that, in one step. Of one that was taken before it says what came of
    /// it; with `again_after` it sends what it sent then once more, if that was so long ago and has no answer.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn step(
        &self,
        step: Step<'_>,
        (queue, message): (&str, &str),
        again_after: Option<Duration>,
        room: Room,
    ) -> Result<Stepped, Error> {
        let of_streams = self.keys.dialect() == Dialect::Streams;
        let call = self.scripts.call(Verb::NoobleStep);
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
        let (told, message): (String, String) = (read.next("told")?, read.next("message")?);
        let (since, answer) = (read.next("since")?, read.next("answer")?);
        match told.as_str() {
            "asked" => Ok(Stepped::Asked),
            "again" => Ok(Stepped::Again { message }),
            "waits" => Ok(Stepped::Waits {
                message,
                since: Duration::from_millis(since),
            }),
            "answered" => Ok(Stepped::Answered { message, answer }),
            "full" => Ok(Stepped::Full),
            _ => Err(Error::Answer {
                verb: "step",
                answer: told,
            }),
        }
    }

    /// Keeps the answer to a step, and forgets the list that it came to.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn keep_answer(
        &self,
        step: Step<'_>,
        (list, answer): (&str, &str),
        room: Room,
    ) -> Result<Kept, Error> {
        let call = self.scripts.call(Verb::NoobleKeepAnswer);
        let call = call.key(step.cycle).key(list).arg(step.name).arg(answer);
        let call = call.arg(room.stays.as_millis() as u64).arg(room.bytes);
        let mut read = call.answer(&self.conn).await?;
        let (told, kept): (String, String) = (read.next("told")?, read.next("kept")?);
        match told.as_str() {
            "kept" => Ok(Kept::Kept(kept)),
            "full" => Ok(Kept::Full),
            "gone" => Ok(Kept::Gone),
            _ => Err(Error::Answer {
                verb: "keep_answer",
                answer: told,
            }),
        }
    }

    /// Keeps the steps of a cycle for so long from now on, and no longer.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn end_cycle(&self, cycle: &str, stays: Duration) -> Result<(), Error> {
        let mut cmd = redis::cmd("PEXPIRE");
        self.ask("end_cycle", cmd.arg(cycle).arg(stays.as_millis() as u64))
            .await
    }

    /// The oldest answer on a list, where it stays: whoever dies now has lost nothing. It is waited for on `blocking`,
    /// if there is one; None if none came in time.
    ///
    /// # Errors
    /// If the connection breaks, or the key is no list.
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
        // From its right end to its right end: the list is as it was, however many are on it.
        let mut cmd = redis::cmd("BLMOVE");
        cmd.arg(list).arg(list).arg("RIGHT").arg("RIGHT");
        cmd.arg(wait.as_secs_f64());
        let value = blocking.call("peek", &cmd, wait).await?;
        Option::from_redis_value(value).map_err(|error| Error::Call {
            verb: "peek",
            source: error.into(),
        })
    }

    /// Takes what is no answer off a list.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn drop_reply(&self, list: &str, message: &[u8]) -> Result<(), Error> {
        let mut cmd = redis::cmd("LREM");
        self.ask("drop_reply", cmd.arg(list).arg(1).arg(message))
            .await
    }
}
