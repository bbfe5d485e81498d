//! A job: what is asked for ([`NewJob`]), what the record in Redis says ([`Job`]), and the limits that hold
//! for both ([`limits`]). How a record is stored and changed is the broker's.

mod child;
pub mod exec;
mod fields;
pub mod limits;
mod log_path;
mod membership;
mod new;
mod record;
mod wish;

pub use child::{ChildDigest, InvalidChild, NewChild, child_id};
pub use fields::field;
pub use log_path::log_path_fault;
pub use membership::Membership;
pub use new::{Invalid, NewJob, OnFailure, UnknownOnFailure};
pub use record::{Job, text};
pub(crate) use wish::name_fault;
pub use wish::{OnDuplicate, Unique, UnknownPolicy, Until, When};

#[cfg(test)]
mod tests;
