//! Real servers for tests: redis-server, valkey-server, PostgreSQL and PgBouncer on loopback, each with its own port, socket and directory.
//!
//! A server lives as long as its [`RealServer`] and never longer than the test's process, however that ends: see
//! [`guard`]. A test whose program is missing on this machine is reported as skipped by name, and fails in CI: see
//! [`tools`]. [`crate::fakes`] has fake servers.

mod cluster;
mod guard;
mod options;
mod pgbouncer;
mod postgres;
mod sentinel;
mod server;
mod shared;
mod tls;
pub mod tools;

pub use cluster::RealCluster;
pub use options::ServerOptions;
pub use pgbouncer::RealPgBouncer;
pub use postgres::RealPostgres;
pub use sentinel::RealSentinels;
pub use server::{RealServer, free_port};
pub use shared::{FreshDatabase, shared, shared_for};
pub use tls::{SelfSigned, TlsFiles};
pub use tools::{Tool, find, need, need_for, need_program, need_root};
