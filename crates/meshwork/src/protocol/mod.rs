//! Workers for job systems, one folder for each.

pub mod bananas;
mod handlers;
pub(crate) mod hero;
pub mod nooble;

use std::sync::Arc;

use meshwork_runtime::Runtime;

/// A runtime of any kind.
type AnyRuntime = Arc<dyn Runtime>;
