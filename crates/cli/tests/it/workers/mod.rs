//! Workers as processes.

pub(crate) mod alert;
mod app;
pub(crate) mod beside;
mod compiled;
pub(crate) mod dead_worker;
mod dependencies;
pub(crate) mod limits;
pub(crate) mod metrics;
pub(crate) mod noise;
mod objects;
#[cfg(feature = "otlp")]
pub(crate) mod otlp;
pub(crate) mod program;
pub(crate) mod rescue;
mod runtime;
pub(crate) mod sandbox;
mod sandbox_kills;
mod suspended;
pub(crate) mod trace;
mod variables;
pub(crate) mod worker;
pub(crate) mod worker_request;
