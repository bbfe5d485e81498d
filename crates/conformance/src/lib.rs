//! Requirements of the broker's scripts: the cases of the conformance suite, the mutations that break one rule each,
//! and connections that fail at chosen moments.
//!
//! This crate depends on the model and the broker, and not on the library, so a change of the library does not
//! rebuild it.

pub mod accept;
pub mod agreeing;
mod around;
pub mod cases;
pub mod faulty;
pub mod footprint;
pub mod full_log;
pub mod moody;
pub mod mutation;
pub mod objects;
pub mod snapshot;
pub mod trials;
