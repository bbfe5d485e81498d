//! Printed form of a batch.

use std::collections::BTreeMap;

use meshwork::BatchStatus;
use meshwork::model::time;
use serde::Serialize;

/// A batch as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) state: &'a str,
    pub(super) total: u64,
    pub(super) pending: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    first_failed: Option<&'a str>,
    expired: bool,
    cancelled: Option<&'a str>,
    /// Ids by event.
    callbacks: BTreeMap<&'a str, &'a str>,
    pub(super) created_at: String,
    open_until: Option<String>,
    ended_at: Option<String>,
}

impl<'a> From<&'a BatchStatus> for Shown<'a> {
    fn from(batch: &'a BatchStatus) -> Self {
        let callbacks = batch.callbacks.iter();
        Self {
            id: batch.id.as_str(),
            name: &batch.name,
            state: batch.state.as_str(),
            total: batch.total,
            pending: batch.pending(),
            succeeded: batch.succeeded,
            failed: batch.failed,
            first_failed: batch.first_failed.as_deref(),
            expired: batch.expired,
            cancelled: batch.cancelled.as_deref(),
            callbacks: callbacks
                .map(|(kind, id)| (kind.as_str(), id.as_str()))
                .collect(),
            created_at: time::iso(batch.created_ms),
            open_until: batch.open_until_ms.map(time::iso),
            ended_at: batch.ended_ms.map(time::iso),
        }
    }
}
