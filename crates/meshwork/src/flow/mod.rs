//! Flows: jobs that depend on each other, in one file or built in Rust.
//!
//! [`load`] reads a file into a [`Plan`], which is checked then. [`FlowClient`] submits it to a context, where a [`Stepper`]
//! takes it on.

mod builder;
pub mod expr;
mod fault;
mod file;
pub mod graph;
mod inputs;
pub mod run;
mod store;

pub use builder::{Flow, Task};
pub use fault::{FlowFault, FlowFaults};
pub use file::{SCHEMA, load};
pub use inputs::{Given, InputError, parse_inputs, set_inputs};
pub use meshwork_model::flow::{Fault, NodeName, Plan};
pub use store::{FlowClient, FlowError, FlowView, ItemView, JobView, Stepper, StepperHandle};
