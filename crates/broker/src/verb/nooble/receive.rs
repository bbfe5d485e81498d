//! receive: wait for messages of a queue. What is given is this worker's from then on.

use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, Pipeline, Value};

use super::keep::{HAND_WAITS, MAX_WAIT};
use super::{Nooble, OURS, Source, room_for};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// A message that is this worker's: as long as it is renewed, of a stream; as the worker is, of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The queue that it came from.
    pub source: Arc<Source>,
    /// Its id in the stream; empty for one of a list.
    pub id: String,
    /// How often the stream has given it away, which is the proof that it is this worker's.
    pub given: u64,
    /// How many workers went away while they had it.
    pub lost: u32,
    /// The message; None if there is no field `data` in the stream's entry.
    pub message: Option<Vec<u8>>,
    /// What else is in the stream's entry: names and values.
    pub others: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An entry of a stream; nothing if it was deleted before it was given away.
type Entry = (String, Option<Vec<Vec<u8>>>);
type Streams = Option<Vec<(String, Vec<Entry>)>>;

impl Received {
    /// The message as it stands; nothing if there is none.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.message.as_deref().unwrap_or_default()
    }

    pub(super) fn new(
        source: &Arc<Source>,
        id: String,
        (given, lost): (u64, u32),
        fields: Vec<Vec<u8>>,
    ) -> Self {
        let mut fields = fields.into_iter();
        let (mut message, mut others) = (None, Vec::new());
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            match name.as_slice() {
                b"data" => message = Some(value),
                _ => others.push((name, value)),
            }
        }
        Self {
            source: Arc::clone(source),
            id,
            given,
            lost,
            message,
            others,
        }
    }
}

impl Nooble {
    /// The name under which a worker takes messages; `incarnation` is another one for each process that ever was.
    #[must_use]
    pub fn worker(incarnation: &str) -> String {
        format!("{OURS}{incarnation}")
    }

    /// Makes the stream and its group, if they are not there: a group that is new is given what stands in the
    /// stream already. Of a list there is nothing to make.
    ///
    /// # Errors
    /// If the key holds something else, or the server does not take the call.
    pub async fn prepare(&self, source: &Source) -> Result<(), Error> {
        let Some(group) = &source.group else {
            return Ok(());
        };
        let mut cmd = redis::cmd("XGROUP");
        cmd.arg("CREATE").arg(source.queue()).arg(group);
        let made = self.ask::<Value>("prepare", cmd.arg("0").arg("MKSTREAM"));
        match made.await {
            Err(Error::Call { source, .. }) if source.code() == Some("BUSYGROUP") => Ok(()),
            made => made.map(|_| ()),
        }
    }

    /// Takes up to `most` messages that are there, oldest first.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call. Then messages may have been
    /// given to nobody: they come back when they were not renewed for long.
    pub async fn receive(
        &self,
        worker: &str,
        source: &Arc<Source>,
        most: usize,
    ) -> Result<Vec<Received>, Error> {
        at_most("receive", MAX_ITEMS, most)?;
        if source.group.is_some() {
            let cmd = read_group(worker, source, most, None);
            let given = cmd.query_async(&mut self.conn.clone()).await;
            return self.given(source, given).await;
        }
        // One step, which ends where nothing is left: a lone message costs no look for more of them per free slot.
        let call = self.scripts.call(Verb::NoobleReceive).key(source.queue());
        let call = call.key(source.keys.processing_of(worker)).arg(most);
        let call = call.arg(HAND_WAITS.as_millis() as u64);
        let taken: Vec<Vec<u8>> = call.run(&self.conn).await?;
        let taken = taken.into_iter();
        Ok(taken.map(|message| of_list(source, message)).collect())
    }

    /// Waits until a message comes, and takes it. None if none came in time, which is [`MAX_WAIT`] at the longest. A wait
    /// begins when those before it on its connection are over, which may take `before`.
    ///
    /// # Errors
    /// If the connection breaks, or the queue is something else.
    pub async fn wait(
        &self,
        blocking: &BlockingConn,
        worker: &str,
        source: &Arc<Source>,
        wait: Duration,
        before: Duration,
    ) -> Result<Option<Received>, Error> {
        let wait = wait.min(MAX_WAIT);
        if source.group.is_some() {
            let cmd = read_group(worker, source, 1, Some(wait));
            let given = blocking.call("wait", &cmd, before + wait).await;
            let given = match given {
                Ok(value) => Streams::from_redis_value(value).map_err(Into::into),
                Err(Error::Call { source, .. }) => Err(source),
                Err(other) => return Err(other),
            };
            return Ok(self.given(source, given).await?.pop());
        }
        let both = move_to_hand(source, worker, wait);
        let mut told = blocking.call_all("wait", &both, before + wait).await?;
        let value = told.next().unwrap_or(Value::Nil);
        let message = Option::<Vec<u8>>::from_redis_value(value).map_err(|error| Error::Call {
            verb: "wait",
            source: error.into(),
        })?;
        Ok(message.map(|message| of_list(source, message)))
    }

    /// What a worker has in hand of a list, the oldest first, [`MAX_ITEMS`] at most: also what it was given when the
    /// connection broke, and knows nothing of. (Of a stream, nobody renews that, and it is taken over.)
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn in_hand(
        &self,
        worker: &str,
        source: &Arc<Source>,
    ) -> Result<Vec<Received>, Error> {
        if source.group.is_some() {
            return Ok(Vec::new());
        }
        let mut cmd = redis::cmd("LRANGE");
        cmd.arg(source.keys.processing_of(worker));
        cmd.arg(-(MAX_ITEMS as i64)).arg(-1);
        let messages: Vec<Vec<u8>> = self.ask("in_hand", &cmd).await?;
        let messages = messages.into_iter().rev();
        Ok(messages.map(|message| of_list(source, message)).collect())
    }

    /// What a stream gave; where its group is gone, it is made again.
    async fn given(
        &self,
        source: &Arc<Source>,
        given: Result<Streams, redis::RedisError>,
    ) -> Result<Vec<Received>, Error> {
        let streams = match given {
            Ok(streams) => streams.unwrap_or_default(),
            // The stream was deleted, maybe while it was waited for, or the group was destroyed.
            Err(error) if matches!(error.code(), Some("NOGROUP" | "UNBLOCKED")) => {
                self.prepare(source).await?;
                return Ok(Vec::new());
            }
            Err(error) => {
                let queue = [source.queue().to_owned()];
                return Err(Error::of_keys("receive", &queue, error));
            }
        };
        let entries = streams.into_iter().flat_map(|(_, entries)| entries);
        let received = |(id, fields): Entry| {
            let fields = fields.unwrap_or_default();
            Received::new(source, id, (1, 0), fields)
        };
        Ok(entries.map(received).collect())
    }
}

fn of_list(source: &Arc<Source>, message: Vec<u8>) -> Received {
    Received::new(
        source,
        String::new(),
        (0, 0),
        vec![b"data".to_vec(), message],
    )
}

/// Moves a message into the hand of a worker, which is a new list where it had none; so its end goes with it.
fn move_to_hand(source: &Source, worker: &str, wait: Duration) -> Pipeline {
    let hand = source.keys.processing_of(worker);
    let mut moves = room_for(source.queue().len() + hand.len());
    moves
        .arg("BLMOVE")
        .arg(source.queue())
        .arg(&hand)
        .arg("RIGHT")
        .arg("LEFT")
        .arg(wait.as_secs_f64());
    let mut ends = room_for(hand.len());
    ends.arg("PEXPIRE")
        .arg(&hand)
        .arg(HAND_WAITS.as_millis() as u64);
    let mut both = redis::pipe();
    both.add_command(moves).add_command(ends);
    both
}

fn read_group(worker: &str, source: &Source, most: usize, wait: Option<Duration>) -> redis::Cmd {
    let mut cmd = room_for(source.queue().len() + worker.len());
    cmd.arg("XREADGROUP")
        .arg("GROUP")
        .arg(source.group())
        .arg(worker);
    cmd.arg("COUNT").arg(most);
    if let Some(wait) = wait {
        // 0 would be for ever.
        cmd.arg("BLOCK").arg(wait.as_millis().max(1) as u64);
    }
    cmd.arg("STREAMS").arg(source.queue()).arg(">");
    cmd
}
