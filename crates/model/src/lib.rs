//! Meshwork's names, records and rules. Pure: no clock, no randomness, no I/O, no Redis client.
//!
//! What a job is ([`job`]), where it goes ([`route`]), which changes of its status are legal ([`state`]) and
//! what every Redis key is called ([`keys`]); how queues are limited ([`queue`]); when a job runs again and
//! again ([`schedule`]). What Bananas writes and reads is in [`bananas`], what Nooble4 does in [`nooble`].

pub mod access;
pub mod acl;
pub mod actor_key;
pub mod bananas;
pub mod batch;
pub mod context;
pub mod envelope;
pub mod flow;
pub mod job;
pub mod keys;
pub mod migration;
pub mod name;
pub mod nooble;
pub mod outcome;
pub mod queue;
pub mod retry;
pub mod route;
pub mod schedule;
pub mod secret;
pub mod state;
pub mod stored;
pub mod time;
pub mod trace;
