//! Jobs on Redis: types of jobs ([`trait@Job`]), a client that enqueues them ([`Client`]), workers that run them
//! ([`Worker`]), tests of handlers ([`testing`]), flows ([`flow`]), and runtimes for scripts ([`runtime`]).
//!
//! [testing.md]: testing
//! [results]: https://github.com/meshwork/meshwork/blob/main/docs/scripts.md#results-of-other-jobs
//! [flows]: flow
//! [flow]: flow::Flow
//! [contexts]: context
//! [verdicts]: https://github.com/meshwork/meshwork/blob/main/docs/scripts.md#verdicts
//!
#![doc = include_str!("../docs/library.md")]

// The derive macro names the crate, also in this one.
extern crate self as meshwork;

mod client;
pub mod context;
mod error;
#[cfg(feature = "scripts")]
pub mod flow;
pub mod handler;
#[cfg(test)]
#[cfg(feature = "scripts")]
mod late_start_tests;
pub mod mesh;
pub mod metrics;
pub mod protocol;
pub mod runtime;
mod shutdown;
pub mod spread;
pub mod testing;
mod transfer;
pub mod view;
mod wait_pool;
mod why;
pub mod worker;

/// The examples of docs/testing.md, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
mod testing_docs {}

/// The examples of docs/runtimes.md, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/runtimes.md")]
mod runtimes_docs {}

pub use meshwork_broker::conn::{Target, TlsFiles};
pub use meshwork_broker::{
    BatchState, BatchStatus, Blocker, Cancelled, Configured, DeadCursor, DeadLetter, DeadPage,
    Deleted, Enqueued, JobChange, JobEvent, JobPage, Limits, LogLine, QueueAlert, QueueDepth,
    QueueInfo, Retention, Retried, RunNow, SchedulePage, Scheduled, SetJob, Settings,
};

#[doc(hidden)]
pub use client::Placed;
pub use client::{
    Batch, BatchRequest, BulkCancel, Client, ClientBuilder, Enqueue, Enqueueable, EventFilter,
    EventFollower, EventPage, FoundJobs, InvalidCursor, Job, JobFilter, JobHandle, JobRequest,
    JobState, LogFollower, MAX_PAGE, MAX_TEXT_SCAN, NewSchedule, PageCursor, PagedJob, PagedJobs,
    ScheduleHandle, data_directory, local_name,
};
pub use handler::{Attempt, Input, JobHandler, Progress, State};
pub use meshwork_model::job::{
    Invalid as InvalidJob, Job as JobRecord, NewChild, OnDuplicate, Tag, Until,
};
pub use meshwork_model::name::{
    BatchId, Group, Instance, JobId, NameError, RoutingKey, ScheduleName, ScriptType,
};
pub use meshwork_model::outcome::{Failure, FailureKind, Report};
pub use meshwork_model::retry::RetryBackoff;
pub use meshwork_model::route::{Priority, Route};
pub use meshwork_model::sandbox::Profile as SandboxProfile;
pub use meshwork_model::schedule::policy::{CatchUp, Overlap};
pub use meshwork_model::state::{State as JobStatus, Status as RecordStatus};
pub use meshwork_runtime::clock::host_ms;
pub use runtime::{Inputs, JobContext, JobError};
pub use tokio_util::sync::CancellationToken;

pub use error::Error;
pub use meshwork_macros::{Job, handler, job};
pub use protocol::hero::{MAX_POOL, Worker, WorkerInfo, WorkerPool};
#[doc(hidden)]
pub use serde;
pub use shutdown::shutdown_signal;
pub use transfer::{TransferError, Transferred};
pub use why::WaitReason;
pub use worker::{
    InvalidPrefetch, InvalidSetting, LogDirError, MAX_CONCURRENCY, Monitor, Prefetch, Unhealthy,
    WorkerHandle,
};
