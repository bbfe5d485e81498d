//! The worker engine, which knows no protocol. A [`Protocol`] says how jobs are claimed, reported and kept; the engine does
//! all else; [`start`] starts a worker. docs/adding-a-protocol.md is the guide.
//!
//! [`fetcher`] claims jobs and reports results while slots are free, [`prefetch`] waits for ids while the queues are
//! empty and there is [`demand`] for them, [`spawner`] gives each job a task, [`executor`] runs it, [`completer`] reports
//! failures, [`in_flight`] knows all jobs that are claimed, [`heartbeat`] renews their leases on a thread of its own,
//! [`exclusive`] lets a job run alone, [`handle`] starts and shuts down, [`health`] and [`meter`] observe.

mod completer;
pub(crate) mod config;
pub(crate) mod dedicated_thread;
pub(crate) mod demand;
pub(crate) mod engine;
pub(crate) mod exchange;
mod exclusive;
pub(crate) mod executor;
mod fetcher;
mod handle;
mod health;
mod heartbeat;
mod identity;
pub(crate) mod in_flight;
mod log_forwarder;
mod logfile;
pub(crate) mod meter;
mod prefetch;
pub(crate) mod protocol;
pub(crate) mod release;
mod spawner;
pub(crate) mod task;
pub(crate) mod waits;

pub use config::{Config, InvalidSetting, MAX_CONCURRENCY, TIMEOUT};
pub(crate) use engine::Engine;
pub use exchange::{Completed, Exchanged, FetchRequest, Fetched};
pub(crate) use handle::start_engine;
pub use handle::{WorkerHandle, start};
pub use health::{Monitor, Unfit};
pub(crate) use identity::Identity;
pub use in_flight::InFlight;
pub use logfile::LogDirError;
pub(crate) use logfile::LogFolders;
pub use meshwork_broker::{Error as CallError, Line, Logged, Outages};
pub use meshwork_model::worker_request::WorkerRequest;
pub use protocol::{Failed, FailedRun, Intake, Prepared, Protocol, Queues, Renewed, Step, Waited};
pub use task::Completion;
