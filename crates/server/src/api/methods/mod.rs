//! The methods, one file for each object.

pub(super) mod batch;
pub(super) mod context;
pub(super) mod dead;
pub(super) mod flow;
pub(super) mod gate;
pub(super) mod job;
pub(super) mod job_history;
pub(super) mod job_source;
pub(super) mod key;
pub(super) mod message;
pub(super) mod migration;
pub(super) mod new_job;
pub(super) mod new_jobs;
pub(super) mod queue;
pub(super) mod queue_alert;
pub(super) mod queue_history;
pub(super) mod queue_limit;
pub(super) mod runner;
pub(super) mod schedule;
pub(super) mod spread;
pub(super) mod system;
pub(super) mod worker;
