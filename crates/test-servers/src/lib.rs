//! Real servers and fakes for tests, and helpers that wait.
//!
//! This crate depends on no crate of Meshwork, so that their changes do not rebuild it.

pub mod account;
pub mod binary;
pub mod calls;
pub mod cuttable;
mod eventually;
pub mod fakes;
pub mod halting;
mod kept;
pub mod plain;
mod say;
pub mod servers;
mod small_disk;
pub mod stalling;

pub use eventually::eventually;
pub use kept::Kept;
pub use say::say;
pub use small_disk::SmallDisk;
