//! The rules by which a flow runs, in one place: [`Decider::decide`] says what happens next in a [`FlowState`].
//!
//! Whoever drives a flow applies each [`Decision`] to the state ([`FlowState::apply`]), reports starts and ends, and asks
//! again. [`interpret()`] does so in memory with a virtual clock; it is what tests compare with.

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
pub(super) use retry::renew;
pub use retry::{RetryError, RetryFrom, retry};
pub use state::{
    Decision, End, FlowEnd, FlowState, ItemRun, JobRun, Phase, Prepared, Refused, Stop,
};
