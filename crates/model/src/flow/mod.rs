//! Flows: jobs that depend on each other, in one plan. Pure data and checks; no expressions are evaluated here.
//!
//! A file or the builder makes a [`Plan`], [`check`](fn@check) finds its faults, [`Graph`] orders its jobs, and
//! [`Dag`] shows them. [`limits`] has the bounds.

mod check;
mod dag;
mod graph;
pub mod limits;
mod name;
mod plan;

#[cfg(test)]
mod tests;

pub use check::{Fault, FaultKind, Problem, check, distance, unused};
pub use dag::{Dag, DagNode, JobState};
pub use graph::{Ancestors, Cycle, Graph};
pub use name::{NodeName, NodeNameError, Position, RESERVED};
pub use plan::{Approve, FlowSchedule, Input, Node, Plan, Run, Text, Wait, Work};
