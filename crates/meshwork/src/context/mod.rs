//! Contexts: actors of a node, their permissions, and messages between contexts.
//!
//! [`Node`] is a store with its actors and contexts, [`Identity`] an actor with its secret key, [`ContextHandle`] one
//! context. Each call checks the permissions of the actor, in one place ([`ContextHandle::allow`]).

mod actors;
mod answer;
mod audit;
mod coordinator;
mod damage;
mod deliver;
mod done;
mod error;
mod handle;
mod inbox;
mod jobs;
mod key_file;
mod letters;
mod message;
mod node;
mod origin;
mod outbox_watch;
mod passphrase;
#[cfg(test)]
mod passphrase_tests;
mod private_file;
mod records;
mod results;
mod retention;
mod route;
mod runners;
mod send;
mod served;
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
pub use origin::{InvalidOrigin, Origin, Site};
pub use passphrase::{MAX_PASSPHRASE, Passphrase};
pub use runners::NewRunner;
pub use send::{MessageJob, NewMessage};
pub use transport::{Delivery, LocalTransport, Parcel, Transport};

/// Greatest number of attempts of a change whose record changes meanwhile.
const TRIES: usize = 16;
/// Number of messages in one page of a coordinator's step.
const MOST: usize = 100;
/// Number of keys in one page of a scan.
const PAGE: usize = 1_000;
