//! Jobs from the command.

pub(crate) mod batch;
pub(crate) mod children;
pub(crate) mod dead;
pub(crate) mod each;
pub(crate) mod events;
pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod input;
pub(crate) mod inputs;
pub(crate) mod job;
pub(crate) mod order;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod schedule;
pub(crate) mod start_timeout;
pub(crate) mod tags;
pub(crate) mod verdict;
pub(crate) mod waits;
pub(crate) mod why;
pub(crate) mod words;
