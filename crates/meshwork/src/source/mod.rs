//! Workers for the jobs of other systems, over the runtimes of ours: one folder for each system.

pub mod bananas;
