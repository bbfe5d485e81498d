//! The rules by which a flow runs, in one place: [`Decider::decide`] returns the next decisions for a [`FlowState`].
//!
//! The caller applies each [`Decision`] to the state ([`FlowState::apply`]), reports starts and ends, and calls again.
//! [`interpret()`] does so in memory with a virtual clock; tests compare other runs with it.

mod compensate;
mod decide;
mod interpret;
mod retry;
mod state;

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod retry_tests;
#[cfg(test)]
mod tests;

pub use decide::Decider;
pub use interpret::{Attempt, Entry, JobReport, Report, Simulation, interpret};
pub use retry::renew;
pub use retry::{RetryError, RetryFrom, retry};
pub use state::{
    Decision, End, FlowEnd, FlowState, ItemRun, JobRun, Phase, Prepared, Refused, Stop,
};
