//! Input: the result of another job for a run.

use std::collections::BTreeMap;

use crate::state::Status;

/// The result of a prerequisite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Id of the prerequisite.
    pub id: String,
    /// Its status; `None` if its record was deleted.
    pub status: Option<Status>,
    /// Approximate size of its result, in bytes.
    pub bytes: usize,
    /// Result of a finished job, or of a `foreach` of which items failed; `None` if it was left out for its size.
    pub output: Option<Vec<u8>>,
    /// Errors of a failed job: by index for a `foreach`, else with the index 0.
    pub errors: BTreeMap<usize, String>,
}
