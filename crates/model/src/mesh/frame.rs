//! Frames between nodes: binary, signed by the node's key over destination, time and items. A frame has at most
//! [`MAX_FRAME`] bytes, or one larger item.
//!
//! Form: `MWF1`, the length of the signed part (4 bytes, as all numbers big-endian), the signed part, the signature (64
//! bytes), zeros. The signed part: destination and source (32 bytes each), time of sending in ms (8), number of items (2),
//! and the items. The zeros avoid lengths that the daemon never delivers.

use crate::actor_key::{PublicKey, SIGNATURE_BYTES, SecretKey};
use crate::context::{NodeId, Reason};
use crate::envelope::{MAX_ENVELOPE, Nonce, SKEW, pae};
use crate::keys::context::{ActorId, ContextId, MessageKey};

/// Greatest length of a frame with several items, in bytes.
pub const MAX_FRAME: usize = 64 * 1024;
/// Greatest number of items in a frame.
pub const MAX_ITEMS: usize = 1000;
/// Greatest length of the result of a message, in bytes.
pub const MAX_RESULT: usize = 1024 * 1024;
/// Greatest length of a reason, in bytes.
pub const MAX_REASON: usize = 1024;
/// Greatest length of the version of a program, in bytes.
pub const MAX_VERSION: usize = 64;
/// Greatest length of a frame with one large item.
const MAX_LARGE: usize = MAX_ENVELOPE + 4096;
/// First bytes of a frame of this version.
const MAGIC: &[u8; 4] = b"MWF1";
/// Type of the signed bytes.
const TYPE: &str = "application/vnd.meshwork.frame.v1";
/// Bytes before the signed part.
const HEAD: usize = MAGIC.len() + 4;
/// Bytes of a chunk of the daemon.
const CHUNK: usize = 1300;
/// Shortest last chunk that the daemon counts.
const LAST_CHUNK: usize = 250;

/// A message at its sender: its context there, its key and its nonce. The node is that of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SentFrom {
    /// Context of the sender.
    pub context: ContextId,
    /// Key of the message in that context.
    pub message: MessageKey,
    /// Nonce of its envelope.
    pub nonce: Nonce,
}

/// State of a message at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerState {
    /// Stored in its context.
    Stored,
    /// Taken up.
    Acknowledged,
    /// Its jobs have ended well.
    Processed,
    /// It failed.
    Failed,
    /// It was refused, and never will be accepted.
    Refused,
    /// The receiver has too many messages: to be sent again later.
    Busy,
    /// The receiver does not have the message: to be sent again.
    Unknown,
}

impl PeerState {
    const ALL: [Self; 7] = [
        Self::Stored,
        Self::Acknowledged,
        Self::Processed,
        Self::Failed,
        Self::Refused,
        Self::Busy,
        Self::Unknown,
    ];
}

/// An item of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The envelope of a message, unchanged.
    Message(Vec<u8>),
    /// Result of a message of the receiver.
    Result {
        /// The message of the receiver.
        re: SentFrom,
        /// The result, as a message of the sender.
        from: SentFrom,
        /// Its content, as JSON; at most [`MAX_RESULT`].
        json: Vec<u8>,
    },
    /// State of a message of the receiver.
    State {
        /// The message.
        of: SentFrom,
        /// The context to which it went.
        at: ContextId,
        /// Its state there.
        state: PeerState,
        /// The reason of a failure, at most [`MAX_REASON`] bytes.
        reason: Option<Reason>,
    },
    /// Asks for the state of a message of the sender.
    Ask {
        /// The message.
        of: SentFrom,
        /// The context to which it went.
        at: ContextId,
    },
    /// Cancels a message of the sender.
    Cancel {
        /// The message.
        of: SentFrom,
        /// The context to which it goes.
        at: ContextId,
    },
    /// Asks for a [`Item::Pong`] with the same number.
    Ping {
        /// The number.
        id: u64,
    },
    /// Answers a ping.
    Pong {
        /// The number of the ping.
        id: u64,
        /// Version of the program, at most [`MAX_VERSION`] bytes.
        version: String,
    },
}

/// Items that one node sends another one, with both nodes and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Receiver.
    pub dst: NodeId,
    /// Sender.
    pub src: NodeId,
    /// Time of sending, in milliseconds since 1970.
    pub sent_ms: u64,
    /// Items.
    pub items: Vec<Item>,
}

/// The reason why a frame was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The frame is longer than allowed.
    #[error("too long")]
    Oversized,
    /// The bytes are no frame.
    #[error("malformed")]
    Malformed,
    /// The sender is not trusted, or is another one than the daemon says.
    #[error("unknown node")]
    UnknownNode,
    /// The signature does not match.
    #[error("tampered")]
    Tampered,
    /// The frame is for another node.
    #[error("wrong node")]
    WrongNode,
    /// The frame is too old, or from the future.
    #[error("wrong time")]
    WrongTime,
}

impl FrameFault {
    /// Returns the code of the fault, the same in all releases.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Oversized => "oversized",
            Self::Malformed => "malformed",
            Self::UnknownNode => "unknown_node",
            Self::Tampered => "tampered",
            Self::WrongNode => "wrong_node",
            Self::WrongTime => "wrong_time",
        }
    }
}

impl Item {
    /// Returns the number of its bytes in a frame.
    #[must_use]
    pub fn length(&self) -> usize {
        /// Bytes of a message at its sender.
        const FROM: usize = 28;
        match self {
            Self::Message(envelope) => 5 + envelope.len(),
            Self::Result { json, .. } => 5 + 2 * FROM + json.len(),
            Self::State { reason, .. } => {
                let reason = reason.as_ref();
                let text = reason.map_or(0, |it| it.code.len() + it.text.len().min(MAX_REASON));
                14 + FROM + text
            }
            Self::Ask { .. } | Self::Cancel { .. } => 5 + FROM,
            Self::Ping { .. } => 9,
            Self::Pong { version, .. } => 13 + version.len(),
        }
    }
}

impl Frame {
    /// Bytes of a frame around its items.
    pub const AROUND: usize = HEAD + 74 + SIGNATURE_BYTES;

    /// Writes and signs the frame.
    ///
    /// # Errors
    /// [`FrameFault::Oversized`] if it has too many items or bytes.
    pub fn seal(&self, key: &SecretKey) -> Result<Vec<u8>, FrameFault> {
        let body = self.body()?;
        let signature = key.sign(&pae(TYPE, &body));
        let length = u32::try_from(body.len()).map_err(|_| FrameFault::Oversized)?;
        let mut bytes = [MAGIC.as_slice(), &length.to_be_bytes(), &body, &signature].concat();
        let most = match self.items.len() {
            0 | 1 => MAX_LARGE,
            _ => MAX_FRAME,
        };
        if bytes.len() > most {
            return Err(FrameFault::Oversized);
        }
        bytes.resize(padded_length(bytes.len()), 0);
        Ok(bytes)
    }

    fn body(&self) -> Result<Vec<u8>, FrameFault> {
        let count = u16::try_from(self.items.len()).map_err(|_| FrameFault::Oversized)?;
        if self.items.len() > MAX_ITEMS {
            return Err(FrameFault::Oversized);
        }
        let mut body = [self.dst.0.as_slice(), &self.src.0].concat();
        body.extend(self.sent_ms.to_be_bytes());
        body.extend(count.to_be_bytes());
        for item in &self.items {
            write(&mut body, item)?;
        }
        Ok(body)
    }

    /// Reads a frame at `now_ms`. `key_of` returns the key of a trusted node whose daemon sent the bytes; it is called
    /// before anything else of the frame is believed.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn open(
        bytes: &[u8],
        me: NodeId,
        now_ms: u64,
        key_of: impl FnOnce(NodeId) -> Option<PublicKey>,
    ) -> Result<Self, FrameFault> {
        use FrameFault::{Malformed, Oversized, Tampered, UnknownNode, WrongNode, WrongTime};
        if bytes.len() > padded_length(MAX_LARGE) {
            return Err(Oversized);
        }
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Malformed);
        }
        let length = usize::try_from(reader.number::<4>()?).map_err(|_| Malformed)?;
        let body = reader.take(length)?;
        let signature: [u8; SIGNATURE_BYTES] = reader.array()?;
        let used = HEAD + length + SIGNATURE_BYTES;
        if bytes.len() != padded_length(used) || reader.0.iter().any(|byte| *byte != 0) {
            return Err(Malformed);
        }
        let mut reader = Reader(body);
        let (dst, src) = (NodeId(reader.array()?), NodeId(reader.array()?));
        let key = key_of(src).ok_or(UnknownNode)?;
        if !key.verifies(&pae(TYPE, body), &signature) {
            return Err(Tampered);
        }
        if dst != me {
            return Err(WrongNode);
        }
        let sent_ms = reader.number::<8>()?;
        if sent_ms.abs_diff(now_ms) > SKEW * 1000 {
            return Err(WrongTime);
        }
        let count = usize::try_from(reader.number::<2>()?).map_err(|_| Malformed)?;
        if count > MAX_ITEMS || (count > 1 && used > MAX_FRAME) {
            return Err(Oversized);
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(reader.item()?);
        }
        if !reader.0.is_empty() {
            return Err(Malformed);
        }
        Ok(Self {
            dst,
            src,
            sent_ms,
            items,
        })
    }
}

/// Returns the length to which a frame is padded: the daemon never delivers a payload of several chunks whose last one is
/// shorter than 250 bytes.
#[must_use]
pub const fn padded_length(length: usize) -> usize {
    match length % CHUNK {
        last if length > CHUNK && last > 0 && last < LAST_CHUNK => length - last + LAST_CHUNK,
        _ => length,
    }
}

/// Numbers of the kinds of items.
mod kind {
    pub(super) const MESSAGE: u8 = 1;
    pub(super) const RESULT: u8 = 2;
    pub(super) const STATE: u8 = 3;
    pub(super) const ASK: u8 = 4;
    pub(super) const PING: u8 = 5;
    pub(super) const PONG: u8 = 6;
    pub(super) const CANCEL: u8 = 7;
}

fn write(body: &mut Vec<u8>, item: &Item) -> Result<(), FrameFault> {
    match item {
        Item::Message(envelope) => {
            body.push(kind::MESSAGE);
            write_bytes(body, envelope, MAX_ENVELOPE)?;
        }
        Item::Result { re, from, json } => {
            body.push(kind::RESULT);
            write_from(body, re);
            write_from(body, from);
            write_bytes(body, json, MAX_RESULT)?;
        }
        Item::State {
            of,
            at,
            state,
            reason,
        } => {
            body.push(kind::STATE);
            write_from(body, of);
            body.extend(at.get().to_be_bytes());
            body.push(*state as u8);
            let (code, text) = match reason {
                Some(reason) => (reason.code.as_str(), reason.text.as_str()),
                None => ("", ""),
            };
            write_bytes(body, code.as_bytes(), Reason::MAX_CODE)?;
            let text = &text[..text.floor_char_boundary(MAX_REASON)];
            write_bytes(body, text.as_bytes(), MAX_REASON)?;
        }
        Item::Ask { of, at } => {
            body.push(kind::ASK);
            write_from(body, of);
            body.extend(at.get().to_be_bytes());
        }
        Item::Cancel { of, at } => {
            body.push(kind::CANCEL);
            write_from(body, of);
            body.extend(at.get().to_be_bytes());
        }
        Item::Ping { id } => {
            body.push(kind::PING);
            body.extend(id.to_be_bytes());
        }
        Item::Pong { id, version } => {
            body.push(kind::PONG);
            body.extend(id.to_be_bytes());
            write_bytes(body, version.as_bytes(), MAX_VERSION)?;
        }
    }
    Ok(())
}

fn write_from(body: &mut Vec<u8>, from: &SentFrom) {
    body.extend(from.context.get().to_be_bytes());
    body.extend(from.message.caller.0.to_be_bytes());
    body.extend(from.message.id.to_be_bytes());
    body.extend(from.nonce.0);
}

fn write_bytes(body: &mut Vec<u8>, bytes: &[u8], most: usize) -> Result<(), FrameFault> {
    let length = u32::try_from(bytes.len()).map_err(|_| FrameFault::Oversized)?;
    if bytes.len() > most {
        return Err(FrameFault::Oversized);
    }
    body.extend(length.to_be_bytes());
    body.extend(bytes);
    Ok(())
}

/// Reads bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FrameFault> {
        let (front, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(FrameFault::Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameFault> {
        self.take(N)?.try_into().map_err(|_| FrameFault::Malformed)
    }

    /// Reads a number of `N` bytes.
    fn number<const N: usize>(&mut self) -> Result<u64, FrameFault> {
        let bytes: [u8; N] = self.array()?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn bytes(&mut self, most: usize) -> Result<Vec<u8>, FrameFault> {
        let length = usize::try_from(self.number::<4>()?).map_err(|_| FrameFault::Malformed)?;
        match length <= most {
            true => Ok(self.take(length)?.to_vec()),
            false => Err(FrameFault::Oversized),
        }
    }

    fn context(&mut self) -> Result<ContextId, FrameFault> {
        let id = u32::try_from(self.number::<4>()?).map_err(|_| FrameFault::Malformed)?;
        ContextId::new(id).ok_or(FrameFault::Malformed)
    }

    fn text(&mut self, most: usize) -> Result<String, FrameFault> {
        String::from_utf8(self.bytes(most)?).map_err(|_| FrameFault::Malformed)
    }

    fn reason(&mut self) -> Result<Option<Reason>, FrameFault> {
        let (code, text) = (self.text(Reason::MAX_CODE)?, self.text(MAX_REASON)?);
        match (code.is_empty() && text.is_empty(), Reason::is_code(&code)) {
            (true, _) => Ok(None),
            (false, true) => Ok(Some(Reason::new(code, text))),
            (false, false) => Err(FrameFault::Malformed),
        }
    }

    fn from(&mut self) -> Result<SentFrom, FrameFault> {
        let id = |number| u32::try_from(number).map_err(|_| FrameFault::Malformed);
        let context = self.context()?;
        let caller = ActorId(id(self.number::<4>()?)?);
        let message = id(self.number::<4>()?)?;
        Ok(SentFrom {
            context,
            message: MessageKey {
                caller,
                id: message,
            },
            nonce: Nonce(self.array()?),
        })
    }

    fn item(&mut self) -> Result<Item, FrameFault> {
        let [kind] = self.array()?;
        Ok(match kind {
            kind::MESSAGE => Item::Message(self.bytes(MAX_ENVELOPE)?),
            kind::RESULT => Item::Result {
                re: self.from()?,
                from: self.from()?,
                json: self.bytes(MAX_RESULT)?,
            },
            kind::STATE => {
                let (of, at) = (self.from()?, self.context()?);
                let [state] = self.array()?;
                let state = PeerState::ALL.get(usize::from(state));
                let state = *state.ok_or(FrameFault::Malformed)?;
                Item::State {
                    of,
                    at,
                    state,
                    reason: self.reason()?,
                }
            }
            kind::ASK => Item::Ask {
                of: self.from()?,
                at: self.context()?,
            },
            kind::CANCEL => Item::Cancel {
                of: self.from()?,
                at: self.context()?,
            },
            kind::PING => Item::Ping {
                id: self.number::<8>()?,
            },
            kind::PONG => Item::Pong {
                id: self.number::<8>()?,
                version: self.text(MAX_VERSION)?,
            },
            _ => return Err(FrameFault::Malformed),
        })
    }
}

#[cfg(test)]
mod tests;
