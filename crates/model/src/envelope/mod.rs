//! Signed envelopes: what an actor says, to whom, until when, in a form that nobody else can make or change.
//!
//! The form is DSSE: a signature covers the type and the body. Destination, expiry and a nonce are in the body. What an
//! envelope says is looked at only after its signatures are verified, by keys that are trusted here: the sender names
//! himself, but never the key he is checked with. Time and keys are passed in.
//!
//! [`Body::seal`] makes an envelope, [`open`] reads one, and [`ReplayWindow`] knows which it has seen.

mod body;
mod dsse;
mod json;
mod keyring;
mod replay;

pub use body::{Blob, Body, Destination, Kind, Nonce, Source};
pub use dsse::pae;
pub use keyring::{Keyring, TrustedKey};
pub use replay::{MAX_SEEN, ReplayWindow};

use crate::actor_key::KeyBytes;
use crate::context::NodeId;
use crate::keys::context::{ActorId, ContextId};

/// The largest body, in bytes: it is parsed and kept in memory as a whole.
pub const MAX_BODY: usize = 1024 * 1024;
/// The largest envelope, in bytes: the body as base64, and what stands around it.
pub const MAX_ENVELOPE: usize = MAX_BODY.div_ceil(3) * 4 + 4096;
/// The most signatures: each costs a verification. An actor who changes his key has two.
pub const MAX_SIGNATURES: usize = 4;
/// The longest time between creation and expiry, in seconds (7 days): as long nonces are remembered.
pub const MAX_LIFE: u64 = 7 * 24 * 3600;
/// How far clocks of two nodes may be apart, in seconds (5 minutes), in either direction.
pub const SKEW: u64 = 300;

/// What a body is, under the signature: a signature on one type is none on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadType {
    /// Chat and mail.
    Message,
    /// Jobs to be run.
    Job,
    /// That a message was stored or taken up.
    Ack,
    /// What became of jobs.
    Result,
}

impl PayloadType {
    /// All that are known; any other is refused.
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

/// Why an envelope is refused. What it holds is in no message: most refused envelopes are by strangers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It has too many bytes.
    #[error("the {what} has {len} bytes: at most {most} are allowed")]
    Oversized {
        /// Envelope or body.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The most allowed.
        most: usize,
    },
    /// It has not the form of an envelope, or the body not that of one.
    #[error("the envelope cannot be read: {fault}")]
    Malformed {
        /// What is wrong with it.
        fault: String,
    },
    /// The type is unknown, not the one wanted here, or not the one of its body.
    #[error("the envelope is of a type that is not taken here")]
    WrongType,
    /// No trusted key has the id that a signature names.
    #[error("no trusted key has the id {key_id:?}: trust the actor with `meshwork actor trust`")]
    UnknownKey {
        /// The id, cut to a readable length.
        key_id: String,
    },
    /// The key was revoked, or replaced for too long.
    #[error("the key of actor {actor} counts no more since {since} (seconds since 1970)")]
    RevokedKey {
        /// Whose key it was.
        actor: ActorId,
        /// Since when it does not count, in seconds since 1970.
        since: u32,
    },
    /// A signature does not fit the body, its type and the key.
    #[error("a signature does not fit: the envelope was changed, or the key is another's")]
    Tampered,
    /// It is signed by another actor than the one whom the body names, or by several.
    #[error("the envelope is signed by another actor than it names")]
    WrongActor,
    /// It is for another node.
    #[error("the envelope is for node {wanted}")]
    WrongDestination {
        /// The node that it is for.
        wanted: NodeId,
    },
    /// It is for another context.
    #[error("the envelope is for context {wanted}")]
    WrongContext {
        /// The context that it is for.
        wanted: ContextId,
    },
    /// Its time is over.
    #[error("the envelope expired at {at} (seconds since 1970)")]
    Expired {
        /// When, in seconds since 1970.
        at: u64,
    },
    /// It was created later than now.
    #[error(
        "the envelope is from the future: created at {at} (seconds since 1970). Check the clocks of both nodes"
    )]
    FromTheFuture {
        /// When, in seconds since 1970.
        at: u64,
    },
    /// It has come before.
    #[error("the envelope has come before")]
    Replayed,
    /// It cannot be told whether it has come before.
    #[error(
        "{MAX_SEEN} envelopes are remembered, and none of them has expired: send it again later"
    )]
    TooMany,
}

impl Refusal {
    /// A word for programs, the same in all releases.
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
            Self::TooMany => "busy",
        }
    }
}

/// Who reads an envelope, and which it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receiver<'a> {
    /// This node.
    pub node: NodeId,
    /// The context for which envelopes are read.
    pub context: ContextId,
    /// The types that are taken.
    pub types: &'a [PayloadType],
}

/// An envelope whose signatures, destination and time are in order. Whether it has come before is not looked at:
/// see [`ReplayWindow::admit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The actor who signed it, by his number on this node.
    pub actor: ActorId,
    /// What it says.
    pub body: Body,
}

/// Reads an envelope at `now` (seconds since 1970). The checks go in this order: size, form, type, keys, signatures,
/// actor, destination, time. All signatures must be good ones of one actor.
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
    // Only what is signed is read from here on.
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
