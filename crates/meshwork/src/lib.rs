//! Meshwork for programs: submit jobs, run workers, add runtimes.

pub mod runner;
