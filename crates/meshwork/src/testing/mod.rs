//! Tests of users' code: run a handler without a store, use a store in memory, see what was enqueued, run all that
//! waits, and advance the clock. docs/testing.md has examples.

#[cfg(feature = "embedded")]
mod clock;
mod drain;
mod enqueued;
mod perform;

#[cfg(feature = "embedded")]
pub use clock::Clock;
pub use drain::{Drained, drain};
pub use enqueued::{assert_enqueued, enqueued, refute_enqueued};
pub use perform::{JobFailure, Perform, perform};
