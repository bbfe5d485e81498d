//! Jobs, queues, workers and the rest as JSON: one form of each for `--json` of the command and for the API.

mod batch;
mod context;
mod dead;
mod job;
mod json;
mod queue;
mod sandbox;
mod schedule;
mod scheduled_job;
mod source;
mod why;

#[cfg(feature = "scripts")]
pub use crate::flow::{FlowDag, FlowSummary};
pub use batch::BatchView;
pub use context::{ActorView, ContextSummary, ContextView, RunnerLoad, RunnerView};
pub use dead::{DeadGroup, DeadGroups, DeadLetterView};
pub use job::{
    FailedAttemptView, JobAbout, JobSummary, JobView, ProgressView, state_of, status_of,
};
pub use json::value_of;
pub use queue::{QueueAlertView, QueueSettingsView, QueueView};
pub use sandbox::RunUsageView;
pub use schedule::ScheduleView;
pub use scheduled_job::{ScheduleJobView, ScheduledJobView, UniqueView};
pub use source::JobSourceView;
pub use why::WhyView;
