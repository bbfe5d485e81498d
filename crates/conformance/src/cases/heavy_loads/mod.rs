//! 100,000 items wherever a script walks.

pub(crate) mod heavy;
pub(crate) mod heavy_batches;
pub(crate) mod heavy_keys;
pub(crate) mod heavy_maintenance;
pub(crate) mod heavy_prerequisites;
pub(crate) mod heavy_schedules;
