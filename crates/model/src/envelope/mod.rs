//! Signed envelopes: a message of an actor with its destination and expiry, which nobody else can create or change.
//!
//! The format is DSSE: a signature covers the type and the body. Destination, expiry and a nonce are in the body. The
//! content is read only after its signatures were verified with keys that are trusted here. The sender names himself,
//! but never the key for the check. The caller passes in time and keys.
//!
//! [`Body::seal`] creates an envelope, and [`open`] reads one. An envelope that is sent again is detected where messages
//! are stored: its source, message and nonce are the origin of exactly one message.

mod body;
mod claim;
mod dsse;
mod json;
mod keyring;
mod record;

pub use body::{Blob, Body, Destination, Kind, Nonce, Source};
pub use claim::{Claim, claim};
pub use dsse::pae;
pub use keyring::{Keyring, TrustedKey};

use crate::actor_key::KeyBytes;
use crate::context::{NodeId, Reason};
use crate::keys::context::{ActorId, ContextId};

/// Greatest length of a body, in bytes. It is parsed and kept in memory as a whole.
pub const MAX_BODY: usize = 1024 * 1024;
/// Greatest length of an envelope, in bytes: the body as base64, and the fields around it.
pub const MAX_ENVELOPE: usize = MAX_BODY.div_ceil(3) * 4 + 4096;
/// Greatest number of signatures; each costs a verification. An actor who changes his key has two.
pub const MAX_SIGNATURES: usize = 4;
/// Greatest time between creation and expiry, in seconds (7 days). Origins of messages are remembered for longer.
pub const MAX_LIFE: u64 = 7 * 24 * 3600;
/// Greatest difference of the clocks of two nodes, in seconds (5 minutes), in either direction.
pub const SKEW: u64 = 300;

/// Type of a body. A signature for one type is not valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadType {
    /// Chat and mail.
    Message,
    /// Jobs to be run.
    Job,
    /// Acknowledgement: a message was stored or taken up.
    Ack,
    /// Results of jobs.
    Result,
}

impl PayloadType {
    /// All known types; any other is refused.
    pub const ALL: [Self; 4] = [Self::Message, Self::Job, Self::Ack, Self::Result];

    /// The media type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "application/vnd.meshwork.message.v1+json",
            Self::Job => "application/vnd.meshwork.job.v1+json",
            Self::Ack => "application/vnd.meshwork.ack.v1+json",
            Self::Result => "application/vnd.meshwork.result.v1+json",
        }
    }

    fn find(text: &str) -> Result<Self, Refusal> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or(Refusal::WrongType)
    }
}

/// The reason why an envelope was refused. Messages quote nothing of its content, because most refused envelopes come
/// from strangers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The envelope or its body is too large.
    #[error("the {what} has {len} bytes: at most {most} are allowed")]
    Oversized {
        /// Envelope or body.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// Greatest allowed length in bytes.
        most: usize,
    },
    /// The envelope or its body has a wrong form.
    #[error("the envelope cannot be read: {fault}")]
    Malformed {
        /// The fault.
        fault: String,
    },
    /// The type is unknown, not accepted here, or not that of the body.
    #[error("the envelope is of a type that is not taken here")]
    WrongType,
    /// No trusted key has the id of a signature.
    #[error("no trusted key has the id {key_id:?}: trust the actor with `meshwork actor trust`")]
    UnknownKey {
        /// The id, shortened.
        key_id: String,
    },
    /// The key was revoked, or its time as a previous key is over.
    #[error("the key of actor {actor} counts no more since {since} (seconds since 1970)")]
    RevokedKey {
        /// Owner of the key.
        actor: ActorId,
        /// Time from which the key is not valid, in seconds since 1970.
        since: u32,
    },
    /// A signature does not match the body, its type and the key.
    #[error("a signature does not fit: the envelope was changed, or the key is another's")]
    Tampered,
    /// The signer is not the actor whom the body names, or there are several signers.
    #[error("the envelope is signed by another actor than it names")]
    WrongActor,
    /// The destination is another node.
    #[error("the envelope is for node {wanted}")]
    WrongDestination {
        /// The destination.
        wanted: NodeId,
    },
    /// The destination is another context.
    #[error("the envelope is for context {wanted}")]
    WrongContext {
        /// The destination.
        wanted: ContextId,
    },
    /// The envelope has expired.
    #[error("the envelope expired at {at} (seconds since 1970)")]
    Expired {
        /// Time of the expiry, in seconds since 1970.
        at: u64,
    },
    /// The time of creation is in the future.
    #[error(
        "the envelope is from the future: created at {at} (seconds since 1970). Check the clocks of both nodes"
    )]
    FromTheFuture {
        /// Time of creation, in seconds since 1970.
        at: u64,
    },
    /// The envelope belongs to another message: it is used a second time.
    #[error("the envelope was signed for another message: each message needs its own")]
    Replayed,
}

impl Refusal {
    /// Returns a code for programs, the same in all releases.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Oversized { .. } => "too_large",
            Self::Malformed { .. } => "malformed",
            Self::WrongType => "bad_type",
            Self::UnknownKey { .. } => "unknown_key",
            Self::RevokedKey { .. } => "revoked_key",
            Self::Tampered => "tampered",
            Self::WrongActor => "wrong_actor",
            Self::WrongDestination { .. } => "wrong_node",
            Self::WrongContext { .. } => "wrong_context",
            Self::Expired { .. } => "expired",
            Self::FromTheFuture { .. } => "future",
            Self::Replayed => "replay",
        }
    }
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code();
        Self::new(code, format!("{code}: {refusal}"))
    }
}

/// The receiver of an envelope, and the types that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receiver<'a> {
    /// This node.
    pub node: NodeId,
    /// The context for which envelopes are read.
    pub context: ContextId,
    /// Accepted types.
    pub types: &'a [PayloadType],
}

/// An envelope with valid signatures, destination and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Signer, by his number on this node.
    pub actor: ActorId,
    /// Content of the envelope.
    pub body: Body,
}

/// Reads an envelope at `now` (seconds since 1970). The checks go in this order: size, form, type, keys, signatures,
/// actor, destination, time. All signatures must be valid and of one actor.
///
/// # Errors
/// The first check that fails.
pub fn open(
    envelope: &[u8],
    receiver: &Receiver<'_>,
    keys: &Keyring,
    now: u64,
) -> Result<Opened, Refusal> {
    let parts = dsse::parse(envelope)?;
    if !receiver.types.contains(&parts.payload_type) {
        return Err(Refusal::WrongType);
    }
    let signers = keys.verify(&parts, now)?;
    // From here on, only signed bytes are read.
    let body = Body::parse(&parts.body, parts.payload_type)?;
    let same = |signer: &&TrustedKey| signer.actor == signers[0].actor;
    let named = signers
        .iter()
        .any(|signer| KeyBytes::from(signer.key) == body.src.actor);
    if !named || !signers.iter().all(same) {
        return Err(Refusal::WrongActor);
    }
    body.check_destination(receiver)?;
    body.check_time(now)?;
    Ok(Opened {
        actor: signers[0].actor,
        body,
    })
}

#[cfg(test)]
mod tests;
