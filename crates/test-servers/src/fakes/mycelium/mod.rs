//! A fake of the Mycelium daemon (version 0.7.10), for hosts without it. It takes the options of the real one that tests
//! need, its message API over JSON-RPC, and the HTTP API of scripts.
//!
//! It reproduces what the real one was measured to do:
//! * nothing is kept: a restart loses what was not sent, and what was not popped;
//! * messages arrive out of order;
//! * a payload of more than 1,300 bytes whose length modulo 1,300 is 1 to 249 never arrives;
//! * a message to the daemon itself, or to an unknown one, stays `pending`;
//! * a message that did not arrive is `aborted` after 300 s, and its status is unknown after 600 s;
//! * a pop that waits holds up every other call;
//! * a reply arrives in the queue without a topic, past the topics that are not accepted.
//!
//! [`state`] has the messages, without clock and network; [`node`] is one daemon, [`link`] connects daemons over TCP, [`rpc`] and `rest` are the APIs, and
//! [`program`] a process. The network is a fake of its own: a daemon forwards what is for others to all its peers.

pub mod hosted;
pub mod link;
pub mod node;
pub mod program;
mod rest;
pub mod rpc;
pub mod state;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use node::Node;

/// Returns both APIs of a daemon.
pub fn router(node: Arc<Node>) -> Router {
    rpc::router(Arc::clone(&node)).nest("/api/v1", rest::router(node))
}

/// Key of a daemon, 64 hex digits.
pub type PublicKey = String;

/// Reads the secret key of a daemon, or makes one. Returns its public key.
///
/// # Errors
/// The file cannot be read or written, or has another length than 32 bytes.
pub fn identity(file: &Path) -> std::io::Result<PublicKey> {
    let secret = match std::fs::read(file) {
        Ok(secret) => secret,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret: [u8; 32] = rand::random();
            std::fs::write(file, secret)?;
            secret.to_vec()
        }
        Err(error) => return Err(error),
    };
    if secret.len() != 32 {
        let fault = format!("{} has {} bytes, not 32", file.display(), secret.len());
        return Err(std::io::Error::other(fault));
    }
    // The real one multiplies on a curve. Nothing depends on that.
    Ok(HEXLOWER.encode(&Sha256::digest(secret)))
}

/// Returns the address of a daemon in the overlay network.
#[must_use]
pub fn address(pk: &str) -> String {
    let part = |at: usize| pk.get(at..at + 4).unwrap_or("0");
    format!(
        "4{}:{}:{}:{}::1",
        pk.get(..2).unwrap_or("00"),
        part(2),
        part(6),
        part(10)
    )
}
