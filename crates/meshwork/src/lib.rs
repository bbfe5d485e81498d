//! Meshwork for programs: enqueue jobs ([`Client`]), run them ([`Worker`]), add runtimes ([`runtime`]).

mod client;
mod clock;
pub mod context;
mod error;
mod failure;
pub mod flow;
pub mod mesh;
pub mod metrics;
pub mod protocol;
pub mod runtime;
mod span;
mod transfer;
pub mod view;
mod wait_pool;
pub mod worker;

/// The examples of docs/library.md, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
mod library_docs {}

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
pub use meshwork_model as model;

pub use client::{
    Batch, BatchRequest, BulkCancel, Client, EventFilter, EventFollower, EventPage, FoundJobs,
    InvalidCursor, JobFilter, JobRequest, JobState, LogFollower, MAX_PAGE, MAX_TEXT_SCAN,
    NewSchedule, PageCursor, PagedJob, PagedJobs, ScheduleHandle, WaitReason, local_name,
};
pub use clock::host_ms;
pub use error::Error;
pub use protocol::hero::{MAX_POOL, Worker, WorkerInfo, WorkerPool};
pub use transfer::{TransferError, Transferred};
pub use worker::{
    InvalidPrefetch, InvalidSetting, LogDirError, MAX_CONCURRENCY, Monitor, Prefetch, Unhealthy,
    WorkerHandle,
};
