//! Flows: jobs that depend on each other, in one file or built in Rust.
//!
//! [`load`] reads a file into a [`Plan`], which is checked then. [`FlowSession`] submits it to a context for an actor, and a
//! [`Stepper`] takes it on.

mod builder;
mod store;
mod summary;
mod typed;

pub use builder::{Flow, Task};
#[doc(inline)]
pub use meshwork_flow::{
    FlowFault, FlowFaults, FlowTexts, Given, InputError, SCHEMA, expr, graph, load, parse,
    parse_inputs, run, set_inputs, texts, times::FlowTimes,
};
pub use meshwork_model::flow::{Fault, NodeName, Plan};
pub use meshwork_model::keys::context::FlowId;
pub use store::{
    FlowClient, FlowError, FlowSession, FlowView, ItemView, JobView, Stepper, StepperHandle,
    not_runnable,
};
pub(crate) use store::{PlainEnv, Sender};
pub use summary::{FlowDag, FlowSummary};
pub use typed::{Chain, TypedPlan};
