//! A job: what is asked for ([`NewJob`]), what the record in Redis says ([`Job`]), and the limits that hold
//! for both ([`limits`]). How a record is stored and changed is the broker's.

mod fields;
pub mod limits;
mod log_path;
mod new;
mod record;

pub use fields::field;
pub use log_path::log_path_fault;
pub use new::{Invalid, NewJob, OnFailure, UnknownOnFailure};
pub use record::{Job, text};

#[cfg(test)]
mod tests;
