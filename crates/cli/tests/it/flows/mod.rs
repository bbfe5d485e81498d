//! Flows from the command.

pub(crate) mod files;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod terminal;
