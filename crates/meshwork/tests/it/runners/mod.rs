//! The runners, as the worker calls them: scripts and handlers go in, reports come out. What they do inside
//! of their limits is tested beside them.

mod check;
mod confined;
mod custom;
mod handler;
mod log;
mod python;
mod python_outcome;
mod python_processes;
mod rhai;
#[cfg(feature = "sal")]
mod sal;
mod submit;
mod support;
mod trace;

/// True if a launcher is between the runner and the script: see `launched.rs`.
const LAUNCHED: bool = false;
