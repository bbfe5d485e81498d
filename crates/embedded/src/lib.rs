//! An in-process engine for the Redis commands and Lua that Meshwork uses.
//!
//! Here live the data (`store`), the commands over it (`command`), sessions, transactions, blocking
//! and pub/sub (`engine`), Lua (`script`), the append-only log (`log`), the data directory and who
//! owns it (`owner`), and the RESP listener (`listener`). Nothing here knows what a job is.

mod command;
mod engine;
mod listener;
mod log;
mod owner;
mod resp;
mod script;
mod store;

#[doc(hidden)]
pub use command::{CommandInfo, command_table};
#[doc(hidden)]
pub use engine::Probe;
pub use engine::{Clock, Handle, Session};
pub use log::{Fsync, LogError};
pub use owner::{
    OpenError, Opened, Options, Owner, Socket, attach, check_place, open, open_parents,
};
pub use resp::{DecodeError, Protocol, Reply, decode_reply, encode_command, encode_reply};
