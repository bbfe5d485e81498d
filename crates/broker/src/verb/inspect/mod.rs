//! Reads of jobs, their logs, inputs and events. They change nothing.

pub(crate) mod dead;
pub(crate) mod events;
pub(crate) mod inputs;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod pages;
pub(crate) mod prerequisites;
pub(crate) mod retained;
pub(crate) mod stream;
pub(crate) mod summaries;
pub(crate) mod whereabouts;
