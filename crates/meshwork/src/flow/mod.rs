//! Flows: jobs that depend on each other, in one file or built in Rust.
//!
//! [`load`] reads a file into a [`Plan`], which is checked then. [`FlowSession`] submits it to a context for an actor, and a
//! [`Stepper`] takes it on.

mod builder;
pub mod expr;
mod fault;
mod file;
pub mod graph;
mod inputs;
pub mod run;
mod store;
mod summary;
mod times;
mod typed;

pub use builder::{Flow, Task};
pub use fault::{FlowFault, FlowFaults};
pub use file::{SCHEMA, load, parse};
pub use inputs::{Given, InputError, parse_inputs, set_inputs};
pub use meshwork_model::flow::{Fault, NodeName, Plan};
pub use meshwork_model::keys::context::FlowId;
pub use store::{
    FlowClient, FlowError, FlowSession, FlowView, ItemView, JobView, Stepper, StepperHandle,
    not_runnable,
};
pub(crate) use store::{PlainEnv, Sender};
pub use summary::{FlowDag, FlowSummary};
pub use times::FlowTimes;
pub use typed::{Chain, TypedPlan};
