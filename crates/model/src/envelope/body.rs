//! The signed part of an envelope: content, sender, destination and expiry.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::json::strict;
use super::{MAX_LIFE, PayloadType, Receiver, Refusal, SKEW, dsse};
use crate::actor_key::{KeyBytes, SecretKey, hex};
use crate::context::{
    ContextJob, Message, MessageFormat, MessageStatus, MessageType, NodeId, field, limits,
};
use crate::keys::context::{ContextId, MessageKey};

/// Version of the body's format.
const VERSION: u32 = 1;
/// Greatest number of blobs in a message. Each is fetched separately.
const MAX_BLOBS: usize = 100;

/// 16 random bytes, unique among the envelopes of one signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// Reads 32 hexadecimal digits.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        hex(text).map(Self)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// Kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Jobs to be run.
    Job,
    /// A line of a conversation.
    Chat,
    /// A letter.
    Mail,
    /// Results of jobs.
    Result,
    /// Acknowledgement: a message was stored or taken up.
    Ack,
}

impl Kind {
    /// Returns the type under which such a body is signed.
    #[must_use]
    pub const fn payload_type(self) -> PayloadType {
        match self {
            Self::Job => PayloadType::Job,
            Self::Chat | Self::Mail => PayloadType::Message,
            Self::Result => PayloadType::Result,
            Self::Ack => PayloadType::Ack,
        }
    }

    /// Returns the kind of a message.
    #[must_use]
    pub const fn of(message: &Message) -> Self {
        match message.message_type {
            _ if message.is_result() => Self::Result,
            MessageType::Chat => Self::Chat,
            MessageType::Mail => Self::Mail,
            MessageType::Job | MessageType::Result => Self::Job,
        }
    }
}

/// Source of a message. With the message's id and nonce it is the message's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The node that sends it.
    pub node: NodeId,
    /// The context there that stores the message.
    pub context: ContextId,
    /// Public key of the sender. His number is valid only on his node.
    #[serde(serialize_with = "to_text", deserialize_with = "from_text")]
    pub actor: KeyBytes,
}

/// Destination of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// Node that receives the message.
    pub node: NodeId,
    /// The context there.
    pub context: ContextId,
    /// Public key of the actor there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "to_some_text", deserialize_with = "from_some_text")]
    pub actor: Option<KeyBytes>,
    /// The topic there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
}

/// Bytes that travel outside of the envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Their SHA-256, 64 hexadecimal digits.
    pub sha256: String,
    /// Number of bytes.
    pub len: u64,
}

/// The signed content, as JSON. Unknown fields are ignored; numbers are whole, up to 2^53.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// Version of this format: 1.
    pub v: u32,
    /// Kind of the body.
    pub kind: Kind,
    /// The message at its sender, as `12:101`.
    #[serde(serialize_with = "to_id", deserialize_with = "from_id")]
    pub id: MessageKey,
    /// Nonce, unique among the envelopes of the signer.
    #[serde(serialize_with = "to_text", deserialize_with = "from_nonce")]
    pub nonce: Nonce,
    /// Source.
    pub src: Source,
    /// Destination.
    pub dst: Destination,
    /// Time of creation, in seconds since 1970.
    pub created_at: u64,
    /// Expiry, in seconds since 1970; at most [`MAX_LIFE`] after its creation.
    pub expires_at: u64,
    /// Number among all envelopes from this source to this destination.
    #[serde(default)]
    pub seq: u64,
    /// Seconds from its creation until it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Seconds from its creation until it is acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ack: Option<u32>,
    /// Seconds from its creation until it is processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_result: Option<u32>,
    /// The message that it answers, as `12:101`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "to_some_id", deserialize_with = "from_some_id")]
    pub re: Option<MessageKey>,
    /// Format of the text: `html`, `text` or `md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "to_some_text", deserialize_with = "from_some_text")]
    pub format: Option<MessageFormat>,
    /// Status of the message, for kinds that report one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "to_some_text", deserialize_with = "from_some_text")]
    pub status: Option<MessageStatus>,
    /// The text.
    #[serde(default)]
    pub message: String,
    /// The jobs, as records.
    #[serde(default)]
    pub jobs: Vec<Map<String, Value>>,
    /// Blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<Blob>,
}

impl Body {
    /// Returns the body of `message`. It expires with the message's last timeout.
    #[must_use]
    pub fn of(message: &Message, nonce: Nonce, src: Source, dst: Destination) -> Self {
        let created_at = u64::from(message.created_at);
        let kind = Kind::of(message);
        let last = message
            .timeout
            .max(message.timeout_ack)
            .max(message.timeout_result);
        Self {
            v: VERSION,
            kind,
            id: message.key(),
            nonce,
            src,
            dst,
            created_at,
            expires_at: created_at + u64::from(last).min(MAX_LIFE),
            seq: 0,
            timeout: Some(message.timeout),
            timeout_ack: Some(message.timeout_ack),
            timeout_result: Some(message.timeout_result),
            re: None,
            format: Some(message.message_format_type),
            status: (kind == Kind::Result).then_some(message.status),
            message: message.message.clone(),
            jobs: message.job.iter().filter_map(object).collect(),
            blobs: Vec::new(),
        }
    }

    /// Signs it with each key, and writes the envelope.
    ///
    /// # Errors
    /// [`Refusal::Oversized`] if the body is too large, [`Refusal::Malformed`] if there is no key or there are too many.
    pub fn seal(&self, keys: &[&SecretKey]) -> Result<String, Refusal> {
        let body = serde_json::to_vec(self).map_err(|_| malformed("it cannot be written"))?;
        dsse::seal(self.kind.payload_type(), &body, keys)
    }

    /// Parses bytes whose signature was verified for this type.
    pub(super) fn parse(verified: &[u8], signed_as: PayloadType) -> Result<Self, Refusal> {
        let json = strict(verified).map_err(|_| malformed("the body is no strict JSON"))?;
        if json.get("v").and_then(Value::as_u64) != Some(u64::from(VERSION)) {
            return Err(malformed("the body is of another version"));
        }
        // Messages of serde are not used, because they quote values.
        let body: Self = serde_json::from_value(json)
            .map_err(|_| malformed("a field of the body is missing or of another form"))?;
        if body.kind.payload_type() != signed_as {
            return Err(Refusal::WrongType);
        }
        let digest = |blob: &Blob| hex::<32>(&blob.sha256).is_some();
        if body.blobs.len() > MAX_BLOBS || !body.blobs.iter().all(digest) {
            return Err(malformed(
                "the body's blobs are too many or have no SHA-256",
            ));
        }
        Ok(body)
    }

    pub(super) fn check_destination(&self, receiver: &Receiver<'_>) -> Result<(), Refusal> {
        if self.dst.node != receiver.node {
            return Err(Refusal::WrongDestination {
                wanted: self.dst.node,
            });
        }
        if self.dst.context != receiver.context {
            return Err(Refusal::WrongContext {
                wanted: self.dst.context,
            });
        }
        Ok(())
    }

    pub(super) fn check_time(&self, now: u64) -> Result<(), Refusal> {
        let life = self.expires_at.checked_sub(self.created_at);
        if life.is_none_or(|life| life > MAX_LIFE) {
            return Err(malformed(
                "it expires before its creation, or more than 7 days after",
            ));
        }
        if self.created_at > now.saturating_add(SKEW) {
            return Err(Refusal::FromTheFuture {
                at: self.created_at,
            });
        }
        if self.expires_at.saturating_add(SKEW) < now {
            return Err(Refusal::Expired {
                at: self.expires_at,
            });
        }
        Ok(())
    }

    /// Returns the timeouts until the message is stored, acknowledged and processed. A plain client may leave them out.
    pub(super) fn timeouts(&self) -> [u32; 3] {
        [
            self.timeout.unwrap_or(limits::DEFAULT_TIMEOUT),
            self.timeout_ack.unwrap_or(limits::DEFAULT_TIMEOUT_ACK),
            self.timeout_result
                .unwrap_or(limits::DEFAULT_TIMEOUT_RESULT),
        ]
    }

    /// Returns the format of the text.
    pub(super) fn format(&self) -> MessageFormat {
        self.format.unwrap_or(MessageFormat::Text)
    }

    /// Returns true if these are its jobs. A plain client may leave out fields with their defaults.
    fn has_jobs(&self, jobs: &[ContextJob]) -> bool {
        let is_same = |(signed, job): (&Map<String, Value>, &ContextJob)| {
            let context = signed.get(field::CONTEXT_ID).and_then(Value::as_u64);
            let fits = context.is_none_or(|id| id == u64::from(job.context_id.get()));
            let read = ContextJob::from_json(job.context_id, signed.clone());
            fits && read.is_ok_and(|read| read == *job)
        };
        self.jobs.len() == jobs.len() && self.jobs.iter().zip(jobs).all(is_same)
    }

    /// Returns the first field in which the sender's stored message differs from this body; `re`: the message that it
    /// claims to answer. A message that differs must be refused. The log of a message is not signed, and the status
    /// only of a result.
    #[must_use]
    pub fn difference(&self, message: &Message, re: Option<MessageKey>) -> Option<&'static str> {
        let expected = Self::of(message, self.nonce, self.src, self.dst.clone());
        let reports = self.kind == Kind::Result;
        let same = [
            (field::ID, self.id == expected.id),
            (field::MESSAGE_TYPE, self.kind == expected.kind),
            (field::MESSAGE, self.message == expected.message),
            (
                field::MESSAGE_FORMAT_TYPE,
                self.format() == message.message_format_type,
            ),
            (field::TIMEOUT, self.timeouts()[0] == message.timeout),
            (
                field::TIMEOUT_ACK,
                self.timeouts()[1] == message.timeout_ack,
            ),
            (
                field::TIMEOUT_RESULT,
                self.timeouts()[2] == message.timeout_result,
            ),
            (field::JOB, self.has_jobs(&message.job)),
            (field::CREATED_AT, self.created_at == expected.created_at),
            (field::RE, self.re == re),
            (field::STATUS, !reports || self.status == expected.status),
            (
                field::TARGET_CONTEXT,
                message
                    .target_context
                    .is_none_or(|it| it == self.dst.context),
            ),
            (
                field::TARGET_NODE,
                message.target_node.is_none_or(|it| it == self.dst.node),
            ),
            (
                field::TOPIC,
                message.topic.is_none() || message.topic == self.dst.topic,
            ),
        ];
        same.iter().find(|(_, same)| !same).map(|(field, _)| *field)
    }
}

fn object(job: &ContextJob) -> Option<Map<String, Value>> {
    match serde_json::to_value(job) {
        Ok(Value::Object(map)) => Some(map),
        // A record is an object.
        _ => None,
    }
}

fn malformed(fault: &str) -> Refusal {
    Refusal::Malformed {
        fault: fault.to_owned(),
    }
}

fn to_text<T: fmt::Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn to_some_text<T: fmt::Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

fn from_text<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn from_some_text<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    from_text(from).map(Some)
}

fn from_nonce<'de, D: Deserializer<'de>>(from: D) -> Result<Nonce, D::Error> {
    let text = String::deserialize(from)?;
    let nonce = hex(&text).map(Nonce);
    nonce.ok_or_else(|| serde::de::Error::custom("a nonce is 32 hexadecimal digits"))
}

fn to_id<S: Serializer>(key: &MessageKey, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&key.numbers())
}

fn to_some_id<S: Serializer>(key: &Option<MessageKey>, to: S) -> Result<S::Ok, S::Error> {
    to_some_text(&key.map(MessageKey::numbers), to)
}

fn from_id<'de, D: Deserializer<'de>>(from: D) -> Result<MessageKey, D::Error> {
    let text = String::deserialize(from)?;
    MessageKey::of_numbers(&text).map_err(serde::de::Error::custom)
}

fn from_some_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MessageKey>, D::Error> {
    from_id(from).map(Some)
}
