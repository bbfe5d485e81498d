//! Flows: jobs that depend on each other, in one file or built in Rust.
//!
//! [`load`] reads a file into a [`Plan`], which is checked then. Running flows is not there yet.

pub mod expr;
mod fault;
mod file;

pub use fault::{FlowFault, FlowFaults};
pub use file::load;
pub use meshwork_model::flow::{Fault, NodeName, Plan};
