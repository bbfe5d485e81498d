//! The state of an engine: the data, the clients, their waits, watches and subscriptions, and the log of every
//! write; and a call, which is all that a command may work on.

mod blocking;
mod clients;
mod clock;
mod journal;
mod pubsub;
mod settings;
mod state;
mod transaction;
mod watch;

use bytes::Bytes;

pub use clock::Clock;

pub(crate) use clients::{Client, Clients, QUEUE_MAX, Queue, Replies};
pub(crate) use journal::Journal;
pub(crate) use pubsub::{Message, Scope};
pub(crate) use settings::Refused;
pub(crate) use state::{Call, Origin, World};

use crate::command::{Outcome, Spec};

/// Runs a command that needs the session that sent it, or other parts of the engine than the data.
pub(crate) type SessionFn = fn(&mut Call<'_>, &[Bytes]) -> Outcome;

/// The table of all commands, which is above this module.
pub(crate) struct Commands {
    /// Finds the entry that a request names, or the error for the client.
    pub(crate) find: fn(&[Bytes]) -> Result<&'static Spec, String>,
    /// The function of a command that needs more than the data.
    pub(crate) session: fn(&Spec) -> Option<SessionFn>,
}
