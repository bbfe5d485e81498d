//! Flows without a store: the file of a flow, its inputs, expressions and times, the rules by which it runs, and its
//! drawings. The library submits flows to a store and takes them on.

pub mod expr;
mod fault;
mod file;
pub mod graph;
mod inputs;
pub mod run;
pub mod times;

pub use fault::{FlowFault, FlowFaults, spread_and_schedule};
pub use file::{FlowTexts, SCHEMA, digest, load, parse, texts};
pub use inputs::{Given, InputError, parse_inputs, set_inputs};
