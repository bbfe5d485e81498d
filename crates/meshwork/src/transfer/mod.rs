//! Transfer: a store as lines of JSON, and back.

mod export;
mod import;

use meshwork_model::export::{BadItem, VERSION};

/// The most bytes of a line: the largest record with each byte escaped, and the rest.
const MAX_LINE: u64 = 320 * 1024 * 1024;

/// Counts of an export or an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Transferred {
    /// Jobs, of whatever status.
    pub jobs: u64,
    /// Jobs that were there already, and were left as they are.
    pub jobs_left: u64,
    /// Batches.
    pub batches: u64,
    /// Batches that were there already.
    pub batches_left: u64,
    /// Schedules.
    pub schedules: u64,
    /// Schedules that were there already.
    pub schedules_left: u64,
    /// Settings of queues.
    pub settings: u64,
    /// Settings that were there already.
    pub settings_left: u64,
}

/// The reason why a store cannot be exported or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Jobs run.
    #[error(
        "{count} jobs are running, and one that runs cannot be exported: stop the workers, or wait for the jobs with --wait"
    )]
    Running {
        /// The number of jobs.
        count: usize,
    },
    /// A job has been started meanwhile, or by a foreign worker.
    #[error("job {id} is running, and one that runs cannot be exported: stop the workers first")]
    Started {
        /// The job.
        id: String,
    },
    /// Lists of old clients hold jobs.
    #[error(
        "the old list {list} holds jobs: let a worker run them, or finish the migration (`meshwork migrate status`)"
    )]
    OldList {
        /// The list.
        list: String,
    },
    /// A job of a type that migrates, or that was taken over from another system.
    #[error("job {id} cannot be exported: {why}")]
    Bound {
        /// The job.
        id: String,
        /// The reason.
        why: &'static str,
    },
    /// A job with a record that no import takes.
    #[error("the store cannot be exported: {0}")]
    Record(BadItem),
    /// A line that is none.
    #[error("line {line}: {fault}; nothing was imported")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The fault of the line.
        fault: BadItem,
    },
    /// The beginning is missing.
    #[error(
        "line 1 is not the beginning of an export: is this a file of `meshwork export`? Nothing was imported"
    )]
    NoExport,
    /// Written by another release.
    #[error(
        "the export has version {version}, and this release reads version {VERSION}; nothing was imported"
    )]
    Version {
        /// The version of the file.
        version: u32,
    },
    /// Another namespace.
    #[error(
        "the export is of the namespace {theirs}, and this store of {ours}: give --namespace {theirs}; nothing was imported"
    )]
    Namespace {
        /// That of the file.
        theirs: String,
        /// That of the store.
        ours: String,
    },
    /// The end is missing.
    #[error(
        "the export ends after {lines} lines without its last one: it was cut off; nothing was imported"
    )]
    Truncated {
        /// The lines that there are.
        lines: u64,
    },
    /// Lines are missing, or too many.
    #[error("line {line}: the export has {lines} lines by its last one; nothing was imported")]
    Count {
        /// The line.
        line: u64,
        /// The lines by the last one.
        lines: u64,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The store does not take a call.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
}
