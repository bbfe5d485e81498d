//! Settings, limits and counters of queues.

pub(crate) mod alert;
pub(crate) mod configure;
pub(crate) mod counters;
pub(crate) mod fallback;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod limits;
pub mod model;
pub(crate) mod pause;
pub(crate) mod rates;
pub(crate) mod slots;
pub(crate) mod spread;
pub(crate) mod stats;
pub(crate) mod unique;
