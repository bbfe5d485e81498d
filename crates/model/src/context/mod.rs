//! Contexts and what is in them: records of actors, contexts, flows, messages, runners and jobs, to and from hashes.
//!
//! Numbers stand in records as digits, times as whole seconds since 1970, lists and maps as JSON, and flags as `true`
//! or `false`. The key of a record says its numbers, whatever its fields say. A field that is missing has its default;
//! one that cannot be read is refused by name, unless a default is safe. Keys are built in
//! [`crate::keys::context`].

mod actor;
pub mod field;
mod flow;
mod job;
pub mod limits;
mod message;
mod reader;
mod runner;
mod tenant;
mod value;
mod words;

pub use actor::Actor;
pub use flow::Flow;
pub use job::ContextJob;
pub use message::{Message, Overdue};
pub use reader::{FieldFault, RecordError};
pub use runner::Runner;
pub use tenant::{Context, Unsigned};
pub use value::{Address, InvalidAddress, Log, NodeId};
pub use words::{
    FlowEvent, FlowStatus, IllegalChange, LogLevel, MessageEvent, MessageFormat, MessageStatus,
    MessageType, UnknownWord, next_of_job,
};

#[cfg(test)]
mod tests {
    //! What the tests of all records share.

    use crate::actor_key::SecretKey;

    /// Fields as they come from a store.
    pub(super) fn bytes(fields: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        fields.iter().map(own).collect()
    }

    /// Fields as a record writes them: in the order of their names.
    pub(super) fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut pairs: Vec<_> = fields.iter().map(own).collect();
        pairs.sort();
        pairs
    }

    /// A key that is always the same.
    pub(super) fn key(number: u8) -> SecretKey {
        SecretKey::from_seed(&[number; 32])
    }
}
