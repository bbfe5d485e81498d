//! Records and workers of other clients, and the migration from their lists.

pub(crate) mod defer;
pub(crate) mod foreign;
pub(crate) mod foreign_matrix;
pub(crate) mod migrate;
pub(crate) mod migration_lock;
