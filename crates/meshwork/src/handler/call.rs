//! One run of a typed job, as the layers around its handler see it.

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;

use meshwork_model::job::Job as Record;
use serde::Deserialize;
use tower::util::BoxCloneSyncService;

use super::States;
use crate::Job;
use crate::handler::function::JobContext;
use meshwork_runtime::JobError;

/// Field of a job's input that has its item of a list, in flows of typed jobs.
pub(crate) const ITEM: &str = "item";

/// Error of a handler or of a layer. A [`JobError`] in its chain decides about retries.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A handler with the layers around it so far.
pub type JobService = BoxCloneSyncService<JobCall, JobOutput, BoxError>;

/// One run of a job.
///
/// [`FromJob`](super::FromJob) has an example.
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

    /// Reads the input of the job: its item of a list, or the result of its first prerequisite.
    pub(super) fn input<J: Job>(&self) -> Result<J::Input, JobError> {
        let wrong = |error: &dyn Display| {
            JobError::permanent(format!("the input of `{}` does not fit: {error}", J::NAME))
        };
        if let Some(input) = &self.record.input {
            let item: Item<J::Input> = serde_json::from_slice(input).map_err(|e| wrong(&e))?;
            return Ok(item.item);
        }
        let output = self.context.inputs.first().map_err(|e| wrong(&e))?;
        let output = output.ok_or_else(|| wrong(&"there is no job before it"))?;
        serde_json::from_slice(output).map_err(|e| wrong(&e))
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

/// Input with the field [`ITEM`].
#[derive(Deserialize)]
struct Item<T> {
    item: T,
}

/// Result of a run, in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutput(pub Vec<u8>);
