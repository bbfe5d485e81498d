//! The tests of Python scripts once more, in a program that is the launcher of its scripts as well.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod confined;
mod launcher;
mod python;
mod python_outcome;
mod python_processes;
#[cfg(feature = "sal")]
mod sal;
mod support;

/// True if a launcher is between the runner and the script.
const LAUNCHED: bool = true;

/// The harness has a `main` of its own; this comes before it. In other programs it is `main`'s first line.
#[ctor::ctor(unsafe)]
fn init() {
    launcher::hold();
    meshwork::runtime::init();
}
