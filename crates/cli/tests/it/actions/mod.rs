//! Actions of Nooble4 and the gateway.

pub(crate) mod calls;
pub(crate) mod from_runs;
pub(crate) mod gateway;
pub(crate) mod gateway_hostile;
pub(crate) mod refusals;
pub(crate) mod subscribe;
