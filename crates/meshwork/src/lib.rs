//! Meshwork for programs: submit jobs ([`Client`]), run them ([`Worker`]), add runtimes ([`runner`]).

mod client;
mod clock;
mod error;
pub mod runner;
mod worker;

pub use meshwork_broker::conn::{Target, TlsFiles};
pub use meshwork_broker::{
    Cancelled, DeadCursor, DeadLetter, DeadPage, Deleted, JobEvent, JobPage, Limits, LogLine,
    QueueInfo, Retention, Retried,
};
pub use meshwork_model as model;

pub use client::{
    Client, DeadFilter, EventFilter, EventFollower, EventPage, JobRequest, LogFollower, local_name,
};
pub use error::Error;
pub use worker::{LogDirError, Worker, WorkerHandle, WorkerInfo};
