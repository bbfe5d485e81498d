//! Contexts and their objects: records of actors, contexts, flows, messages, runners and jobs, to and from hashes.
//!
//! Records hold numbers as digits, times as whole seconds since 1970, lists and maps as JSON, and flags as `true` or
//! `false`. The numbers in a record's key override its fields. A missing field has its default. An unreadable field
//! is refused by name, unless a default is safe. [`crate::keys::context`] builds the keys.

mod actor;
pub mod field;
mod flow;
mod job;
pub mod limits;
mod message;
mod reader;
mod reason;
mod runner;
mod tenant;
mod value;
mod words;

pub use actor::Actor;
pub use flow::Flow;
pub use job::ContextJob;
pub use message::{Message, Overdue};
pub use reader::{FieldFault, RecordError};
pub use reason::Reason;
pub use runner::Runner;
pub use tenant::{Context, Unsigned};
pub use value::{Address, InvalidAddress, Log, NodeId};
pub use words::{
    FlowEvent, FlowStatus, IllegalChange, LogLevel, MessageEvent, MessageFormat, MessageStatus,
    MessageType, UnknownWord, next_of_job,
};

#[cfg(test)]
mod tests {
    //! Helpers that the tests of all records share.

    use crate::actor_key::SecretKey;

    /// Returns fields as a store returns them.
    pub(super) fn bytes(fields: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        fields.iter().map(own).collect()
    }

    /// Returns fields as a record writes them, sorted by name.
    pub(super) fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut pairs: Vec<_> = fields.iter().map(own).collect();
        pairs.sort();
        pairs
    }

    /// Returns a fixed key for each number.
    pub(super) fn key(number: u8) -> SecretKey {
        SecretKey::from_seed(&[number; 32])
    }
}
