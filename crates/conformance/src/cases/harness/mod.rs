//! Engines, environments and results of cases.

pub(crate) mod engine;
pub(crate) mod failure;
pub(crate) mod legacy_worker;
pub(crate) mod options;
pub(crate) mod run;
pub(crate) mod world;
