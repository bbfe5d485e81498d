//! Contexts: the actors of a node, who may do what in which context, and messages between contexts.
//!
//! [`Node`] is a store with its actors and contexts, [`Identity`] an actor who has shown his key, [`ContextHandle`] one
//! context. Each call checks what the actor may do, in one place ([`ContextHandle::allow`]).

mod actors;
mod audit;
mod coordinator;
mod deliver;
mod error;
mod handle;
mod jobs;
mod key_file;
mod message;
mod node;
mod origin;
mod outbox_watch;
mod passphrase;
#[cfg(test)]
mod passphrase_tests;
mod private_file;
mod runners;
mod send;
mod take_up;
mod transport;

pub use actors::Identity;
pub use audit::AuditEntry;
pub use coordinator::{Coordinator, Serves};
pub use error::{ContextError, KeyFileFault};
pub use handle::ContextHandle;
pub use key_file::{KeyFile, new_key, read_key, write_key};
pub use message::MessageView;
pub use node::Node;
pub use origin::{InvalidOrigin, Origin};
pub use passphrase::{MAX_PASSPHRASE, Passphrase};
pub use runners::NewRunner;
pub use send::{MessageJob, NewMessage};
pub use transport::{Delivery, LocalTransport, Parcel, Transport};

/// Most attempts of a change whose record changes meanwhile.
const TRIES: usize = 16;
/// Keys that one page of a scan looks at.
const PAGE: usize = 1_000;
