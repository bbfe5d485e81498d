//! What Meshwork's tests are made of: real servers, fakes and the conformance suite.
//!
//! Nothing here is part of a product; no crate depends on it but for its tests.

mod account;
pub mod actions;
pub mod around;
pub mod bananas;
pub mod bench;
pub mod calls;
pub mod chaos;
pub mod conformance;
pub mod engines;
mod eventually;
pub mod fakes;
pub mod faulty;
pub mod footprint;
pub mod full_log;
pub mod fuzz;
mod kept;
pub mod legacy;
pub mod moody;
pub mod mutation;
pub mod plain;
mod say;
pub mod scale;
pub mod servers;
mod small_disk;
pub mod snapshot;
pub mod stalling;

pub use eventually::eventually;
pub use say::say;
pub use small_disk::SmallDisk;
