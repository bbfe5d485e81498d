//! Transfer: a store as lines of JSON, and back.

mod export;
mod import;

use meshwork_model::export::{BadItem, VERSION};
use meshwork_model::number::counted;

/// Greatest length of a line, in bytes: the largest record with each byte escaped, and the rest.
const MAX_LINE: u64 = 320 * 1024 * 1024;

/// Counts of an export or an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Transferred {
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs that existed and stay as they are.
    pub jobs_left: u64,
    /// Number of batches.
    pub batches: u64,
    /// Number of batches that existed.
    pub batches_left: u64,
    /// Number of schedules.
    pub schedules: u64,
    /// Number of schedules that existed.
    pub schedules_left: u64,
    /// Number of settings of queues.
    pub settings: u64,
    /// Number of settings that existed.
    pub settings_left: u64,
    /// Lists under the names of jobs that an export left out, since no job is in them; the first 100.
    #[serde(skip)]
    pub skipped: Vec<String>,
}

/// The reason why a store cannot be exported or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Jobs are running.
    #[error(
        "the store has {}, and one that runs cannot be exported: stop the workers, or wait for the jobs with --wait",
        counted(*count, "running job")
    )]
    Running {
        /// Number of running jobs.
        count: usize,
    },
    /// A job was started meanwhile, or by a foreign worker.
    #[error("job {id} is running, and one that runs cannot be exported: stop the workers first")]
    Started {
        /// Id of the job.
        id: String,
    },
    /// Lists of old clients contain jobs.
    #[error(
        "the old list {list} holds jobs: let a worker run them, or finish the migration (`meshwork migrate status`)"
    )]
    OldList {
        /// Name of the list.
        list: String,
    },
    /// A job of a type that migrates, or that was imported from another system.
    #[error("job {id} cannot be exported: {why}")]
    Bound {
        /// Id of the job.
        id: String,
        /// Reason.
        why: &'static str,
    },
    /// A job whose record cannot be imported.
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
