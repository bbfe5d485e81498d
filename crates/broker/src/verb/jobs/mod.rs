//! The life of a job: one file for each verb.

pub(crate) mod add_child;
pub(crate) mod blocking;
pub(crate) mod cancel;
pub(crate) mod claim;
pub mod complete;
pub(crate) mod complete_and_claim;
pub(crate) mod delete;
pub(crate) mod enqueue;
pub(crate) mod fail;
pub(crate) mod gate;
pub(crate) mod isolate;
pub(crate) mod log;
pub(crate) mod promote;
pub(crate) mod prune;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod replies;
pub(crate) mod resolve_dependents;
pub(crate) mod retry;
pub(crate) mod run_now;
pub(crate) mod set_job;
pub(crate) mod wait_and_claim;
