//! Meshwork's queues. Every atomic step is a Lua script ([`script`]), the same on Redis, Valkey and the embedded
//! engine, with one typed function each ([`Broker`]). [`conn`] has the connections, and is the only module that uses
//! the store. Workers run the jobs in another crate.

mod acl;
mod backoff;
mod broker;
mod clock;
mod commands;
pub mod conn;
pub mod doctor;
mod error;
mod outages;
mod replication;
pub mod script;
mod session;
mod verb;

pub use backoff::{Backoff, Tries};
pub use broker::Broker;
pub use clock::Clock;
pub use conn::SlotMap;
pub use error::Error;
pub use outages::Outages;
pub use replication::WaitReplicas;
pub use session::Session;
pub use verb::*;
