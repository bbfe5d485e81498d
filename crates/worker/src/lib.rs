//! The worker engine, which is independent of the job system. A [`Protocol`] claims, reports and stores jobs; the
//! engine does all else. [`start`] starts a worker. The guide is docs/adding-a-protocol.md.
//!
//! [`fetcher`] claims jobs and reports results while slots are free, and [`capacity::prefetch`] says how many jobs beyond
//! them. [`prefetch`] waits for ids while the queues are
//! empty and [`capacity::demand`] exists. [`spawner`] gives each job a task, and [`executor`] runs it. [`completer`] reports
//! failures. [`in_flight`] has all claimed jobs; [`heartbeat`] renews their leases on its own thread. The lease of a run refuses to start a job when it may be over. [`capacity::exclusive`]
//! lets a job run alone. [`readiness`] pauses runtimes that cannot start runs, and [`probing`] checks them. [`handle`] starts and shuts down a worker; [`health`] and [`meter`] observe it.

mod capacity;
mod completer;
mod config;
pub mod dedicated_thread;
mod engine;
mod exchange;
mod executor;
mod failure;
mod fetched;
mod fetcher;
mod handle;
mod health;
mod heartbeat;
mod identity;
mod in_flight;
mod log_forwarder;
mod logfile;
mod meter;
mod pipelined_reads;
mod prefetch;
mod probing;
mod protocol;
mod readiness;
mod release;
pub mod span;
mod spawner;
mod task;

pub use capacity::demand::Demand;
pub use capacity::slots::{Seat, Slots};
pub use config::{
    Config, HEARTBEATS, InvalidPrefetch, InvalidSetting, LONGEST, MAX_CONCURRENCY, Prefetch,
    TIMEOUT,
};
pub use engine::{Engine, SharedParts};
pub use exchange::{Completed, Exchanged, FetchRequest};
pub use executor::bounded;
pub use failure::Reason;
pub use fetched::Fetched;
pub use handle::{StartError, WorkerHandle, start, start_engine};
pub use health::{Monitor, Unhealthy};
pub use identity::Identity;
pub use in_flight::InFlight;
pub use logfile::{LogDirError, LogFolders};
pub use meshwork_broker::{Error as CallError, Line, Logged, Outages};
pub use meshwork_model::worker_request::WorkerRequest;
pub use meter::{Meter, Outcome, Used};
pub use pipelined_reads::PipelinedReads;
pub use protocol::{
    Failed, FailedRun, Intake, Prepared, Protocol, Queues, RIGHTS_FOR, Renewed, Step, Waited,
};
pub use readiness::Faults;
pub use task::Completion;
