//! Schedules and their slots.

pub(crate) mod fire_schedules;
pub(crate) mod overlap;
pub(crate) mod put_schedule;
