//! The command `meshwork`, as people and programs run it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

pub(crate) mod actions;
mod adversary;
pub(crate) mod api;
mod bad_input;
mod bananas;
mod bananas_dead;
mod bananas_refusals;
mod common;
pub(crate) mod context;
mod docs;
mod examples;
mod flow_approvals;
mod flow_plain;
pub(crate) mod flows;
mod guesses;
mod hostile;
pub(crate) mod jobs;
mod killer;
mod lists;
mod lost_directory;
mod migrate_bananas;
mod moments;
mod numbers;
#[cfg(feature = "outbox")]
mod outbox;
mod output;
mod protocol;
mod rights;
mod screen;
mod secrets;
mod sick;
pub(crate) mod stores;
mod survives;
mod terminal;
mod ui;
pub(crate) mod workers;
