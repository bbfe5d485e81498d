//! Registrations, leadership, retention, and clocks.

pub(crate) mod cancel_requests;
pub(crate) mod control;
pub(crate) mod dead;
pub(crate) mod leadership;
pub(crate) mod prune;
pub(crate) mod register;
pub(crate) mod resolve_dependents;
