//! Queues: settings, alerts, waiting jobs and statistics.

pub(crate) mod alert;
pub(crate) mod blockers;
pub(crate) mod configure;
pub(crate) mod depth;
pub(crate) mod history;
pub(crate) mod queue_items;
pub(crate) mod queues;
pub(crate) mod server_stats;
pub(crate) mod settings;
pub(crate) mod spread_keys;
pub(crate) mod stats;
