//! Tests of users' code: run a handler without a store, use a store in memory, see what was enqueued, and run all that
//! waits. docs/testing.md has examples.

mod drain;
mod enqueued;
mod perform;

pub use drain::{Drained, drain};
pub use enqueued::{assert_enqueued, enqueued, refute_enqueued};
pub use perform::{JobFailure, Perform, perform};
