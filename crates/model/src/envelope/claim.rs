//! Claims of an envelope before its signature was verified: a hint for the lookup of a key, and never a proof.

use super::{Body, Nonce, Refusal, Source, dsse};
use crate::keys::context::{ContextId, MessageKey};

/// Claims of an envelope. [`open`](super::open) with the key of the claimed actor verifies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Source, with the key of the actor who claims to have signed it.
    pub src: Source,
    /// The message at its sender.
    pub id: MessageKey,
    /// Context to which it claims to go.
    pub context: ContextId,
    /// Its nonce.
    pub nonce: Nonce,
    /// Time of creation, in seconds since 1970.
    pub created_at: u64,
}

/// Returns the claims of an envelope, of which nothing is verified.
///
/// # Errors
/// The envelope is too large, or has another form.
pub fn claim(envelope: &[u8]) -> Result<Claim, Refusal> {
    let parts = dsse::parse(envelope)?;
    let body = Body::parse(&parts.body, parts.payload_type)?;
    Ok(Claim {
        src: body.src,
        id: body.id,
        context: body.dst.context,
        nonce: body.nonce,
        created_at: body.created_at,
    })
}
