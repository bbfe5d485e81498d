//! Batches as JSON.

use std::collections::BTreeMap;

use meshwork_broker::BatchStatus;
use meshwork_model::time;
use serde::{Deserialize, Serialize};

/// Batch as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchView {
    /// Id of the batch.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// State: `open`, `sealed`, `cancelling`, `succeeded`, `failed` or `cancelled`.
    pub state: String,
    /// Number of its jobs.
    pub total: u64,
    /// Number of jobs that have not ended.
    pub pending: u64,
    /// Number of jobs that finished.
    pub succeeded: u64,
    /// Number of jobs that failed.
    pub failed: u64,
    /// First job that failed.
    pub first_failed: Option<String>,
    /// True if the batch was sealed because nobody did in time.
    pub expired: bool,
    /// Reason of its cancellation.
    pub cancelled: Option<String>,
    /// Ids of the callback jobs, by event.
    pub callbacks: BTreeMap<String, String>,
    /// Time of creation (RFC 3339).
    pub created_at: String,
    /// Time until which it takes jobs (RFC 3339).
    pub open_until: Option<String>,
    /// Time at which its last job ended (RFC 3339).
    pub ended_at: Option<String>,
}

impl From<&BatchStatus> for BatchView {
    fn from(batch: &BatchStatus) -> Self {
        let callbacks = batch.callbacks.iter();
        Self {
            id: batch.id.to_string(),
            name: batch.name.clone(),
            state: batch.state.as_str().to_owned(),
            total: batch.total,
            pending: batch.pending(),
            succeeded: batch.succeeded,
            failed: batch.failed,
            first_failed: batch.first_failed.clone(),
            expired: batch.expired,
            cancelled: batch.cancelled.clone(),
            callbacks: callbacks
                .map(|(kind, id)| (kind.as_str().to_owned(), id.to_string()))
                .collect(),
            created_at: time::iso(batch.created_ms),
            open_until: batch.open_until_ms.map(time::iso),
            ended_at: batch.ended_ms.map(time::iso),
        }
    }
}
