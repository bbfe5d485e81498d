//! The broker on real servers: Redis, Valkey, Sentinel, a Cluster, and the embedded engine.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cluster;
mod common;
mod connect;
mod contexts;
mod directory;
mod doctor;
mod limits;
mod looks;
mod memory;
mod moved;
mod outage;
mod replaced;
mod rights;
mod sentinel;
