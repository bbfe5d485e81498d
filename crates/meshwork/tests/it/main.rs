//! The library on real servers and on the embedded engine.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod alike;
mod bananas;
mod batches;
mod client;
mod compile_errors;
mod contexts;
mod engines;
mod examples;
mod flow_actors;
mod flow_faults;
mod flow_pause;
mod flow_typed;
mod flows;
mod groups;
mod keys;
mod limits;
mod metrics;
mod metrics_mesh;
mod metrics_move;
mod nooble;
mod outage;
mod pages;
mod protocols;
mod refused_slots;
mod runners;
mod settings;
mod shared_calls;
mod short_examples;
mod snapshot;
mod spread;
mod test_clock;
mod typed;
mod worker;
mod worker_support;
