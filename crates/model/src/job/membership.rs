//! The batch of a job.

use crate::name::{BatchId, JobId};

/// The batch to which a job is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The batch.
    pub batch: BatchId,
    /// The running job of the batch that adds this one, and the token of its claim. It may add jobs after the batch
    /// was sealed, because the batch cannot end before it.
    pub by: Option<(JobId, String)>,
}
