//! Records, states, events and keys.

pub(crate) mod clocks;
pub(crate) mod event_coalescing;
pub(crate) mod events;
pub(crate) mod failed_attempts;
pub(crate) mod lifecycle;
pub(crate) mod objects;
pub(crate) mod own_queues;
pub(crate) mod records;
pub(crate) mod restore;
pub(crate) mod series;
pub(crate) mod states;
pub(crate) mod unread;
mod ways_back;
pub(crate) mod wrong_type_keys;
