//! Jobs that no live worker runs and no queue lists: found, tracked, checked, and requeued.

pub(crate) mod check;
pub(crate) mod expire_workers;
pub(crate) mod list;
mod lost;
pub(crate) mod prefetch;
pub(crate) mod reclaim;
pub(crate) mod scan;
pub(crate) mod track;
