//! The life of a job.

pub(crate) mod add_child;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod complete_and_claim;
pub(crate) mod delays;
pub(crate) mod delete;
pub(crate) mod enqueue;
pub(crate) mod fail;
pub(crate) mod fencing;
pub(crate) mod inputs;
pub(crate) mod inspect;
pub(crate) mod isolate;
pub(crate) mod log;
pub(crate) mod order;
pub(crate) mod pages;
pub(crate) mod promote;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod replies;
pub(crate) mod retry;
pub(crate) mod run_now;
pub(crate) mod set_job;
pub(crate) mod start_limits;
