//! Meshwork's names, records and rules. Pure: no clock, no randomness, no I/O, no Redis client.
//!
//! [`job`] has the records of jobs, [`route`] their destinations, [`state`] the legal changes of their status.
//! [`keys`] builds every key of the store. [`queue`] has the limits of queues, and [`schedule`] the times of repeated
//! jobs. [`bananas`] and [`nooble`] have the records and messages of these two systems.

pub mod access;
pub mod acl;
pub mod actor_key;
pub mod api_key;
pub mod bananas;
pub mod batch;
pub mod cancellation;
pub mod context;
pub mod envelope;
pub mod export;
pub mod flow;
pub mod job;
pub mod keys;
pub mod mesh;
pub mod migration;
pub mod name;
pub mod nooble;
pub mod number;
pub mod object;
pub mod outcome;
pub mod param;
pub mod peer;
pub mod queue;
pub mod read;
pub mod retry;
pub mod route;
pub mod sandbox;
pub mod schedule;
pub mod secret;
pub mod spec;
pub mod spread;
pub mod state;
pub mod stored;
pub mod time;
pub mod trace;
pub mod worker_request;
