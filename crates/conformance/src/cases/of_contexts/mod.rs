//! Contexts and flows.

pub(crate) mod context_index;
pub(crate) mod context_waits;
pub(crate) mod contexts;
pub(crate) mod flow_answers;
pub(crate) mod flow_ends;
pub(crate) mod flow_ground;
pub(crate) mod flow_plain;
pub(crate) mod flow_retry;
pub(crate) mod flow_schedules;
pub(crate) mod flows;
pub(crate) mod in_context;
