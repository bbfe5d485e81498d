//! Prerequisites and batches.

pub(crate) mod batch_ends;
pub(crate) mod batch_lists;
pub(crate) mod batches;
pub(crate) mod dependents;
pub(crate) mod foreign_prerequisites;
pub(crate) mod prerequisites;
