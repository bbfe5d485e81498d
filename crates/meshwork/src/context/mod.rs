//! Contexts: actors of a node, their permissions, and messages between contexts.
//!
//! [`Node`] is a store with its actors and contexts, [`Identity`] an actor with its secret key, [`ContextHandle`] one
//! context. Each call checks the permissions of the actor, in one place ([`ContextHandle::allow`]).

mod actors;
mod audit;
mod caller;
mod error;
mod handle;
mod jobs;
mod mesh_figures;
pub(crate) mod messages;
mod node;
mod objects;
mod peers;
mod place;
mod records;
mod refusals;
mod runners;
mod secret;

pub use actors::Identity;
pub use audit::AuditEntry;
pub use caller::{Acting, Caller};
pub use error::{ContextError, KeyFileFault};
pub use handle::ContextHandle;
pub use mesh_figures::{MeshFigures, PeerFigures, RefusedCounts};
pub use messages::coordinator::{Coordinator, Serves};
pub use messages::message::MessageView;
pub use messages::origin::{InvalidOrigin, Origin, Site};
pub use messages::outcome::Outcome;
pub use messages::send::{MessageJob, NewMessage};
pub use messages::transport::{Delivery, Notice, Parcel, StoreTransport, Transport};
pub use node::Node;
pub use peers::{Peer, Pong};
pub use place::ContextPlace;
pub use refusals::Refusals;
pub use runners::{NewRunner, RunnerState};
pub use secret::key_file::{KeyFile, new_key, read_key, write_key};
pub use secret::passphrase::{MAX_PASSPHRASE, Passphrase};

pub use meshwork_model::access::{Object, Operation, Role};
pub use meshwork_model::keys::context::{ActorId, ContextId, ContextLayout, MessageKey, RunnerId};

/// Greatest number of attempts of a change whose record changes meanwhile.
const TRIES: usize = 16;
/// Number of messages in one page of a coordinator's step.
const MOST: usize = 100;
/// Number of keys in one page of a scan.
const PAGE: usize = 1_000;
