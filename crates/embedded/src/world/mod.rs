//! The state of an engine: data, clients, waits, watches and subscriptions, and the log of every write. A call has
//! the state that a command may access.

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

/// Runs a command that needs its session, or other parts of the engine than the data.
pub(crate) type SessionFn = fn(&mut Call<'_>, &[Bytes]) -> Outcome;

/// The table of all commands, which is in a higher module.
pub(crate) struct Commands {
    /// Finds the entry of a request, or returns the error for the client.
    pub(crate) find: fn(&[Bytes]) -> Result<&'static Spec, String>,
    /// Returns the function of a command that needs more than the data.
    pub(crate) session: fn(&Spec) -> Option<SessionFn>,
}
