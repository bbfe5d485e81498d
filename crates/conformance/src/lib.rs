//! What the scripts of the broker have to do: the cases of the conformance suite, the mutations that break one rule
//! each, and connections that fail where a test wants it.
//!
//! It knows the model and the broker, and not the library: a change of that builds nothing of this anew.

pub mod accept;
pub mod agreeing;
mod around;
pub mod cases;
pub mod faulty;
pub mod footprint;
pub mod full_log;
pub mod moody;
pub mod mutation;
pub mod snapshot;
pub mod trials;
