//! Commands that need their session, or other parts of the engine than the data (SELECT, MULTI, EVAL …), and the
//! table of all commands.

mod client;
mod config;
mod connection;
mod info;
mod pubsub;
mod scripting;
mod server;
mod table;
mod transaction;

pub(crate) use table::{COMMANDS, find};
pub use table::{CommandInfo, command_table};

use crate::command::{Flags, Keys, Spec};
use crate::world::SessionFn;

/// A command and its function.
struct Command {
    spec: Spec,
    run: SessionFn,
}

impl Command {
    const fn new(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: SessionFn) -> Self {
        let spec = Spec {
            name,
            arity,
            flags,
            keys,
            data: None,
        };
        Self { spec, run }
    }
}
