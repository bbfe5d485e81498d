//! receive: waits for messages of a queue. A received message belongs to this worker from then on.

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, Pipeline, Value};

use super::upkeep::{HAND_WAITS, MAX_WAIT};
use super::{Nooble, OURS, Source, room_for};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{BlockingConn, MAX_ITEMS, at_most};

/// A message that belongs to this worker: of a stream, as long as it is renewed; of a list, as long as the worker is
/// registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Queue of the message.
    pub source: Arc<Source>,
    /// Id in the stream; empty for a list.
    pub id: String,
    /// Number of deliveries by the stream, which proves that the message belongs to this worker.
    pub given: u64,
    /// Number of workers that died while they had it.
    pub lost: u32,
    /// The message; `None` if the stream's entry has no field `data`.
    pub message: Option<Vec<u8>>,
    /// Other fields of the stream's entry: names and values.
    pub others: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An entry of a stream; without fields if it was deleted before its delivery.
type Entry = (String, Option<Vec<Vec<u8>>>);
type Streams = Option<Vec<(String, Vec<Entry>)>>;

impl Received {
    /// Returns the unchanged message; empty if there is none.
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
    /// Returns the name of a worker; `incarnation` must be unique among all processes ever.
    #[must_use]
    pub fn worker(incarnation: &str) -> String {
        format!("{OURS}{incarnation}")
    }

    /// Creates the stream and its group, if they do not exist. A new group receives all messages in the stream. A
    /// list needs no preparation.
    ///
    /// # Errors
    /// The key has another type, or the server refuses the call.
    #[boxed]
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

    /// Receives up to `most` available messages, oldest first.
    ///
    /// # Errors
    /// `most` exceeds [`MAX_ITEMS`], or the server refuses the call. In the latter case messages may have been
    /// delivered; they return after they were not renewed for a while.
    #[boxed]
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
        // One script moves messages until the list is empty, so that a single message costs one call, not one for
        // each free slot.
        let call = self.scripts.call(Verb::NoobleReceive).key(source.queue());
        let call = call.key(source.keys.processing_of(worker)).arg(most);
        let call = call.arg(HAND_WAITS.as_millis() as u64);
        let taken: Vec<Vec<u8>> = call.run(&self.conn).await?;
        let taken = taken.into_iter();
        Ok(taken.map(|message| of_list(source, message)).collect())
    }

    /// Waits for a message, and receives it. Returns `None` after the timeout, which is at most [`MAX_WAIT`]. A wait
    /// begins after the earlier ones on its connection, which may take `before`.
    ///
    /// # Errors
    /// The connection breaks, or the key has another type.
    #[boxed]
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
        let mut replies = blocking.call_all("wait", &both, before + wait).await?;
        let value = replies.next().unwrap_or(Value::Nil);
        let message = Option::<Vec<u8>>::from_redis_value(value).map_err(|error| Error::Call {
            verb: "wait",
            source: error.into(),
        })?;
        Ok(message.map(|message| of_list(source, message)))
    }

    /// Returns up to [`MAX_ITEMS`] of a worker's in-flight messages of a list, the oldest first. They include
    /// messages that the worker does not know, because its connection broke during the delivery. (Those of a stream
    /// are not renewed, and are reclaimed.)
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn in_flight(
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
        let messages: Vec<Vec<u8>> = self.ask("in_flight", &cmd).await?;
        let messages = messages.into_iter().rev();
        Ok(messages.map(|message| of_list(source, message)).collect())
    }

    /// Returns the messages that a stream delivered. Creates its group again if it is gone.
    async fn given(
        &self,
        source: &Arc<Source>,
        given: Result<Streams, redis::RedisError>,
    ) -> Result<Vec<Received>, Error> {
        let streams = match given {
            Ok(streams) => streams.unwrap_or_default(),
            // The stream was deleted, possibly during the wait, or the group was destroyed.
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

/// Moves a message to the in-flight list of a worker. A new list needs a time to live, which is set in the same
/// pipeline.
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
        // A timeout of 0 would mean no limit.
        cmd.arg("BLOCK").arg(wait.as_millis().max(1) as u64);
    }
    cmd.arg("STREAMS").arg(source.queue()).arg(">");
    cmd
}
