//! Jobs of [Meshwork](meshwork) inside a transaction of PostgreSQL or SQLite.
//!
//! [`Outbox::enqueue`] writes a job into a table, in your own transaction: the job exists if and only if the transaction
//! is committed. A [`Relay`] moves the rows to the store. [`Outbox::processed_once`] is the other end: it lets a handler
//! apply the effect of a job once, however often the job runs.
//!
//! The feature `postgres` (default) has PostgreSQL, `sqlite` has SQLite.

/// The examples of docs/outbox.md, as doc tests.
#[cfg(all(doctest, feature = "postgres", feature = "sqlite"))]
#[doc = include_str!("../../../docs/outbox.md")]
mod outbox_docs {}

mod database;
mod enqueue;
mod error;
mod outbox;
mod relay;
mod rows;
mod tables;
#[cfg(test)]
mod tests;

pub use database::{Backlog, Database, Row};
pub use enqueue::{Accepted, Enqueue};
pub use error::Error;
pub use outbox::Outbox;
pub use relay::Relay;
pub use rows::Examined;
pub use sqlx;
pub use tables::InvalidSchema;
