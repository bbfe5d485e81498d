//! One run of a typed job, as the layers around its handler see it.

use std::error::Error;
use std::sync::Arc;

use meshwork_model::job::Job as Record;
use tower::util::BoxCloneSyncService;

use super::States;
use crate::runtime::JobContext;

/// Error of a handler or of a layer. A [`JobError`](crate::JobError) in its chain decides about retries.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A handler with the layers around it so far.
pub type JobService = BoxCloneSyncService<JobCall, JobOutput, BoxError>;

/// One run of a job.
#[derive(Debug, Clone)]
pub struct JobCall {
    pub(crate) record: Arc<Record>,
    pub(crate) context: JobContext,
    pub(crate) states: States,
}

impl JobCall {
    /// Returns the type of the job.
    #[must_use]
    pub fn name(&self) -> &str {
        self.record.script_type.as_deref().unwrap_or_default()
    }

    /// Returns the payload, in JSON.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.record.script
    }

    /// Returns the context of the run.
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// Returns the values that all handlers of the worker share.
    #[must_use]
    pub fn states(&self) -> &States {
        &self.states
    }
}

/// Result of a run, in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutput(pub Vec<u8>);
