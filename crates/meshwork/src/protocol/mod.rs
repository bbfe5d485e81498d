//! Workers for what other systems ask for, over the runtimes of ours: one folder for each system.

pub mod bananas;
mod handlers;
pub(crate) mod hero;
pub mod nooble;

use std::sync::Arc;

use crate::runner::Runner;

/// A runner, however it came.
type AnyRunner = Arc<dyn Runner>;
