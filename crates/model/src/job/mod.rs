//! A job: the request of a client ([`NewJob`]), the record in the store ([`Job`]), and the limits of both
//! ([`limits`]). The broker stores and changes records.

mod child;
mod env;
pub mod exec;
mod failed_attempt;
mod failure_group;
mod fields;
mod input;
mod invalid;
mod json;
pub mod limits;
mod log_path;
mod membership;
mod new;
mod options;
mod prerequisite;
mod record;
mod tag;

pub use child::{ChildDigest, InvalidChild, NewChild, child_id};
pub use env::EnvTooLarge;
pub use failed_attempt::{AttemptOutcome, FailedAttempt};
pub use failure_group::FailureGroup;
pub use fields::field;
pub use input::Input;
pub use invalid::Invalid;
pub(crate) use json::StoredJob;
pub use json::UnreadableJob;
pub use log_path::log_path_fault;
pub use membership::Membership;
pub use new::NewJob;
pub(crate) use options::name_fault;
pub use options::{OnDuplicate, Unique, UnknownPolicy, Until, When};
pub use prerequisite::{OnFailure, UnknownOnFailure, is_input_name};
pub use record::{Job, text};
pub use tag::{InvalidTag, Tag};

#[cfg(test)]
mod tests;
