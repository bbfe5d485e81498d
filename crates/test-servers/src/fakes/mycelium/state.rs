//! Messages of one daemon: those that it sends, and those that wait to be popped. Time and randomness are passed in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::PublicKey;

/// Pause between two attempts to send a short message that was not acknowledged.
pub const RETRY_MS: u64 = 100;
/// Bytes for which the pause is a millisecond longer: a busy machine would get further copies of a long message before it has read
/// the first one.
const RETRY_BYTES: u64 = 250;
/// Number of times that the pause doubles, so that the copies take ever less of a machine that is too busy to read them.
const MOST_DOUBLED: u32 = 4;
/// Time after which a message that did not arrive is aborted.
pub const ABORTED_MS: u64 = 300_000;
/// Time after which the status of a message is unknown.
pub const FORGOTTEN_MS: u64 = 600_000;
/// Greatest delay of a message, so that messages overtake each other.
pub const DISORDER_MS: u64 = 20;
/// Greatest length of a topic.
pub const MAX_TOPIC: usize = 255;
/// Payload of a chunk.
const CHUNK: usize = 1300;
/// Shortest last chunk that the receiver counts.
const LAST_CHUNK: usize = 250;

/// A message between daemons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Id, 16 hex digits.
    pub id: String,
    /// Sender.
    pub src: PublicKey,
    /// Receiver.
    pub dst: PublicKey,
    /// Topic.
    pub topic: Option<Vec<u8>>,
    /// Payload. Written as text: a list of numbers takes seconds for a mebibyte.
    #[serde(with = "base64")]
    pub payload: Vec<u8>,
    /// True for a reply, which has no topic.
    pub is_reply: bool,
}

/// Bytes as text.
mod base64 {
    use data_encoding::BASE64;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// A frame between daemons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// A message.
    Data(Data),
    /// The daemon `src` has a message of `dst`, or its client has popped it.
    Arrived {
        /// Id of the message.
        id: String,
        /// Receiver of the message.
        src: PublicKey,
        /// Sender of the message.
        dst: PublicKey,
        /// True once it was popped or peeked.
        is_read: bool,
    },
}

impl Frame {
    /// Returns the daemon that the frame is for.
    #[must_use]
    pub fn dst(&self) -> &str {
        match self {
            Self::Data(data) => &data.dst,
            Self::Arrived { dst, .. } => dst,
        }
    }
}

/// State of a sent message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The receiver was not reached.
    Pending,
    /// A part has arrived.
    Sending,
    /// The receiver's daemon has it.
    Received,
    /// The receiver's client has it.
    Read,
    /// It was given up.
    Aborted,
}

/// A sent message.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The message.
    pub data: Data,
    /// Its state.
    pub sent: Sent,
    /// Time of its creation.
    pub created_ms: u64,
    next_ms: u64,
    /// Number of copies that were sent.
    copies: u32,
}

/// The messages of one daemon.
#[derive(Debug)]
pub struct Daemon {
    pk: PublicKey,
    outgoing: BTreeMap<String, Outgoing>,
    /// Arrived messages that cannot be popped yet, by the time when they can.
    delayed: Vec<(u64, Data)>,
    inbox: VecDeque<Data>,
    /// Ids of both.
    waiting: BTreeSet<String>,
    /// Topics whose messages are accepted although the default rejects them.
    topics: BTreeSet<Vec<u8>>,
    accepts: bool,
}

impl Daemon {
    /// Returns a daemon without messages, which accepts all topics.
    #[must_use]
    pub fn new(pk: PublicKey) -> Self {
        Self {
            pk,
            outgoing: BTreeMap::new(),
            delayed: Vec::new(),
            inbox: VecDeque::new(),
            waiting: BTreeSet::new(),
            topics: BTreeSet::new(),
            accepts: true,
        }
    }

    /// Returns its public key.
    #[must_use]
    pub fn pk(&self) -> &str {
        &self.pk
    }

    /// Accepts or rejects messages of topics without an entry.
    pub fn set_default(&mut self, accepts: bool) {
        self.accepts = accepts;
    }

    /// Accepts messages of a topic.
    pub fn add_topic(&mut self, topic: Vec<u8>) {
        self.topics.insert(topic);
    }

    /// Adds a message to be sent.
    pub fn push(&mut self, data: Data, now: u64) {
        let outgoing = Outgoing {
            sent: Sent::Pending,
            created_ms: now,
            next_ms: now,
            copies: 0,
            data,
        };
        self.outgoing.insert(outgoing.data.id.clone(), outgoing);
    }

    /// Returns a sent message.
    #[must_use]
    pub fn sent(&self, id: &str) -> Option<&Outgoing> {
        self.outgoing.get(id)
    }

    /// Returns the frames to send now, and gives up and forgets old messages.
    pub fn tick(&mut self, now: u64) -> Vec<Frame> {
        self.outgoing
            .retain(|_, out| now < out.created_ms.saturating_add(FORGOTTEN_MS));
        let mut frames = Vec::new();
        for out in self.outgoing.values_mut() {
            if !matches!(out.sent, Sent::Pending | Sent::Sending) {
                continue;
            }
            if now >= out.created_ms.saturating_add(ABORTED_MS) {
                out.sent = Sent::Aborted;
            } else if now >= out.next_ms && out.data.dst != self.pk {
                let pause = RETRY_MS + out.data.payload.len() as u64 / RETRY_BYTES;
                out.next_ms = now + (pause << out.copies.min(MOST_DOUBLED));
                out.copies += 1;
                if never_arrives(out.data.payload.len()) {
                    out.sent = Sent::Sending;
                }
                frames.push(Frame::Data(out.data.clone()));
            }
        }
        let due = self.delayed.extract_if(.., |(at, _)| *at <= now);
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(at, _)| *at);
        self.inbox.extend(due.into_iter().map(|(_, data)| data));
        frames
    }

    /// Takes a frame for this daemon, with a random number. Returns the frame that answers it.
    pub fn receive(&mut self, frame: Frame, now: u64, random: u64) -> Option<Frame> {
        match frame {
            Frame::Data(data) => self.arrive(data, now, random),
            Frame::Arrived {
                id, src, is_read, ..
            } => {
                let out = self.outgoing.get_mut(&id)?;
                if out.data.dst == src && out.sent != Sent::Aborted {
                    out.sent = match is_read {
                        true => Sent::Read,
                        false if out.sent == Sent::Read => Sent::Read,
                        false => Sent::Received,
                    };
                }
                None
            }
        }
    }

    fn arrive(&mut self, data: Data, now: u64, random: u64) -> Option<Frame> {
        let accepted = |topic: &Vec<u8>| self.accepts || self.topics.contains(topic);
        let is_accepted = data.is_reply || data.topic.as_ref().map_or(self.accepts, accepted);
        if !is_accepted || never_arrives(data.payload.len()) {
            return None;
        }
        let answer = Frame::Arrived {
            id: data.id.clone(),
            src: self.pk.clone(),
            dst: data.src.clone(),
            is_read: false,
        };
        // The daemon knows a message by its id only while it waits here.
        if self.waiting.insert(data.id.clone()) {
            self.delayed.push((now + random % DISORDER_MS, data));
        }
        Some(answer)
    }

    /// Pops or peeks the oldest message. `Some(topic)` takes only messages of this topic; the empty one takes those
    /// without a topic. Returns the frame for its sender, too.
    pub fn pop(&mut self, topic: Option<&[u8]>, peeks: bool) -> Option<(Data, Frame)> {
        let wanted = |data: &Data| match topic {
            None => true,
            Some([]) => data.topic.is_none(),
            Some(topic) => data.topic.as_deref() == Some(topic),
        };
        let at = self.inbox.iter().position(wanted)?;
        let data = match peeks {
            true => self.inbox.get(at).cloned(),
            false => self.inbox.remove(at),
        }?;
        if !peeks {
            self.waiting.remove(&data.id);
        }
        let frame = Frame::Arrived {
            id: data.id.clone(),
            src: self.pk.clone(),
            dst: data.src.clone(),
            is_read: true,
        };
        Some((data, frame))
    }
}

/// Returns true for a length whose last chunk the receiver does not count.
#[must_use]
pub fn never_arrives(length: usize) -> bool {
    length > CHUNK && (1..LAST_CHUNK).contains(&(length % CHUNK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(id: &str, dst: &str, length: usize) -> Data {
        Data {
            id: id.to_owned(),
            src: "a".to_owned(),
            dst: dst.to_owned(),
            topic: Some(b"t".to_vec()),
            payload: vec![0; length],
            is_reply: false,
        }
    }

    #[test]
    fn lengths_of_a_short_last_chunk_never_arrive() {
        let stuck = [1301, 1400, 1549, 2601, 2849, 13_001, 13_249, 7_340_032];
        assert!(stuck.into_iter().all(never_arrives));
        let fine = [0, 249, 1300, 1550, 2600, 2850, 13_250];
        assert!(!fine.into_iter().any(never_arrives));
    }

    #[test]
    fn a_message_is_resent_until_it_arrives_and_is_given_up_after_300_s() {
        let mut a = Daemon::new("a".to_owned());
        a.push(data("1", "b", 10), 0);
        assert_eq!(
            (a.tick(0).len(), a.tick(99).len(), a.tick(100).len()),
            (1, 0, 1)
        );
        a.push(data("2", "a", 10), 0);
        assert_eq!(
            (a.tick(299).len(), a.tick(300).len()),
            (0, 1),
            "to itself: nothing"
        );
        a.tick(ABORTED_MS);
        assert_eq!(a.sent("1").unwrap().sent, Sent::Aborted);
        assert_eq!(a.sent("2").unwrap().sent, Sent::Aborted);
        a.tick(FORGOTTEN_MS);
        assert!(a.sent("1").is_none());
    }

    #[test]
    fn messages_overtake_each_other_and_are_acknowledged() {
        let (mut a, mut b) = (Daemon::new("a".to_owned()), Daemon::new("b".to_owned()));
        for (id, random) in [("1", 15), ("2", 3)] {
            a.push(data(id, "b", 10), 0);
            let answer = b
                .receive(Frame::Data(data(id, "b", 10)), 0, random)
                .unwrap();
            a.receive(answer, 0, 0);
            assert_eq!(a.sent(id).unwrap().sent, Sent::Received);
        }
        // The same again, while it waits: known.
        b.receive(Frame::Data(data("1", "b", 10)), 0, 1);
        b.tick(DISORDER_MS);
        let (first, read) = b.pop(Some(b"t"), false).unwrap();
        a.receive(read, 0, 0);
        assert_eq!(
            (first.id.as_str(), a.sent("2").unwrap().sent),
            ("2", Sent::Read)
        );
        assert_eq!(b.pop(None, true).unwrap().0.id, "1");
        assert_eq!(b.pop(None, false).unwrap().0.id, "1");
        assert!(b.pop(None, false).is_none());
    }

    #[test]
    fn replies_pass_topics_that_are_not_accepted() {
        let mut b = Daemon::new("b".to_owned());
        b.set_default(false);
        assert!(b.receive(Frame::Data(data("1", "b", 1)), 0, 0).is_none());
        b.add_topic(b"t".to_vec());
        assert!(b.receive(Frame::Data(data("1", "b", 1)), 0, 0).is_some());
        let reply = Data {
            topic: None,
            is_reply: true,
            ..data("2", "b", 1)
        };
        assert!(b.receive(Frame::Data(reply), 0, 0).is_some());
        b.tick(0);
        assert_eq!(b.pop(Some(b""), false).unwrap().0.id, "2");
    }
}
