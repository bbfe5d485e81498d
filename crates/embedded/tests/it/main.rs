//! The embedded engine by its public interface: stored data and protocol.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod blocking;
mod clients;
mod common;
mod full_disk;
mod import_aof;
mod large_damage;
mod listener;
mod log;
mod log_streams;
mod lost;
mod owner;
mod patterns;
mod players;
mod pubsub;
mod scripts;
mod streams;
mod sums;
mod support;
mod transactions;
