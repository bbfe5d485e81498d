//! The worker engine, which is independent of the job system. A [`Protocol`] claims, reports and stores jobs; the
//! engine does all else. [`start`] starts a worker. The guide is docs/adding-a-protocol.md.
//!
//! [`fetcher`] claims jobs and reports results while slots are free, and [`capacity::prefetch`] says how many jobs beyond
//! them. [`prefetch`] waits for ids while the queues are
//! empty and [`capacity::demand`] exists. [`spawner`] gives each job a task, and [`executor`] runs it. [`completer`] reports
//! failures. [`in_flight`] has all claimed jobs; [`heartbeat`] renews their leases on its own thread. `runtime/lease.rs` refuses to start a job whose lease may be over. [`capacity::exclusive`]
//! lets a job run alone. [`readiness`] pauses runtimes that cannot start runs, and [`probing`] checks them. [`handle`] starts and shuts down a worker; [`health`] and [`meter`] observe it.

mod batch;
pub(crate) mod capacity;
mod completer;
pub(crate) mod config;
pub(crate) mod dedicated_thread;
pub(crate) mod engine;
pub(crate) mod exchange;
pub(crate) mod executor;
pub(crate) mod fetched;
mod fetcher;
mod handle;
mod health;
mod heartbeat;
mod identity;
pub(crate) mod in_flight;
#[cfg(test)]
mod late_start_tests;
mod log_forwarder;
mod logfile;
pub(crate) mod meter;
pub(crate) mod pipelined_reads;
mod prefetch;
mod probing;
pub(crate) mod protocol;
mod readiness;
pub(crate) mod release;
mod spawner;
pub(crate) mod task;

pub use config::{Config, InvalidPrefetch, InvalidSetting, MAX_CONCURRENCY, Prefetch, TIMEOUT};
pub(crate) use engine::Engine;
pub use exchange::{Completed, Exchanged, FetchRequest};
pub use fetched::Fetched;
pub(crate) use handle::start_engine;
pub use handle::{WorkerHandle, start};
pub use health::{Monitor, Unhealthy};
pub(crate) use identity::Identity;
pub use in_flight::InFlight;
pub use logfile::LogDirError;
pub(crate) use logfile::LogFolders;
pub use meshwork_broker::{Error as CallError, Line, Logged, Outages};
pub use meshwork_model::worker_request::WorkerRequest;
pub use protocol::{Failed, FailedRun, Intake, Prepared, Protocol, Queues, Renewed, Step, Waited};
pub(crate) use readiness::Faults;
pub use task::Completion;
