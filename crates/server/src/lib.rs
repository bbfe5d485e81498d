//! All that listens on HTTP: [`metrics`], the [`gateway`] of actions, and the [`api`] for jobs, queues and flows.
//! [`ui`] has the pages of the
//! dashboard, and [`http`] is the server below all of them. Options of the command and their defaults are not part of it.

pub mod api;
pub mod gateway;
pub mod http;
pub mod mcp;
pub mod metrics;
mod readiness;
pub mod ui;
