//! Which batch a job belongs to.

use crate::name::{BatchId, JobId};

/// To which batch a job is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The batch.
    pub batch: BatchId,
    /// The running job of the batch that adds it, and the token of its claim: it may do so after the batch
    /// was sealed, since that cannot end meanwhile.
    pub by: Option<(JobId, String)>,
}
