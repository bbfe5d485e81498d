//! An in-process engine for the Redis commands and Lua that Meshwork uses.
//!
//! Modules: the data (`store`), the commands over it (`command`), the state around it (`world`: clients,
//! transactions, blocking, pub/sub), the commands on that state (`session_command`), the order of execution
//! (`engine`), Lua (`script`), the append-only log (`log`), the data directory and its owner (`owner`), and the RESP
//! listener (`listener`). Nothing here knows about jobs.

mod command;
mod engine;
mod listener;
mod log;
mod owner;
mod resp;
mod script;
mod session_command;
mod store;
mod world;

#[doc(hidden)]
pub use engine::Probe;
pub use engine::{Handle, Session};
pub use log::{Fsync, LogError, StoreCheck, StoreFault};
pub use owner::{
    ImportedAof, OpenError, Opened, Options, Owner, Socket, StoreRepair, Survey, attach,
    check_place, check_store, import_aof, open, open_parents, repair_store, survey,
};
pub use resp::{DecodeError, Protocol, Reply, decode_reply, encode_command, encode_reply};
#[doc(hidden)]
pub use session_command::{CommandInfo, command_table};
pub use world::Clock;

/// The version of Redis with the same commands and errors.
const REDIS_VERSION: &str = "7.0.15";
