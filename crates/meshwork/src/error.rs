//! Errors of the library.

use std::time::Duration;

use meshwork_broker::conn::{ConnectError, TargetError};
use meshwork_model::batch::InvalidBatch;
use meshwork_model::job::Invalid;
use meshwork_model::keys::context::ActorId;
use meshwork_model::name::{BatchId, JobId, NameError, ScheduleName};
use meshwork_model::schedule::Unreadable;
use meshwork_model::schedule::timing::RhythmError;
use meshwork_model::schedule::zone::ZoneError;
use meshwork_model::worker_request::WorkerRequest;

use crate::runner::ScriptError;
use crate::worker::{InvalidSetting, LogDirError};

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The URL is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The job cannot be meant.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The script is not accepted.
    #[error("job {id}: {source}")]
    Script {
        /// The job.
        id: JobId,
        /// The fault.
        source: ScriptError,
    },
    /// The server did not take a call.
    #[error(transparent)]
    Broker(meshwork_broker::Error),
    /// A payload or a result is not of the expected type.
    #[error("the {what} of job {id} does not fit its type: {source}")]
    Payload {
        /// Payload or result.
        what: &'static str,
        /// The job.
        id: JobId,
        /// The position of the mismatch.
        source: serde_json::Error,
    },
    /// A worker has not obeyed a request in time. The request was withdrawn.
    #[error(
        "worker {worker} did not obey `{request}` within {} s; the request is withdrawn: see `meshwork worker list`, or wait \
         longer if its lease is long", .waited.as_secs_f64()
    )]
    NotObeyed {
        /// The worker, with its incarnation.
        worker: String,
        /// The request.
        request: WorkerRequest,
        /// The longest wait.
        waited: Duration,
    },
    /// There is a job of that id already.
    #[error("there is a job {id} already: take another id, or look at that one")]
    Exists {
        /// The job.
        id: JobId,
    },
    /// All numbers of a caller's jobs are taken in this context; nothing was written.
    #[error("no number is left for another job of actor {caller}: delete some that have ended")]
    NoJobNumber {
        /// The caller.
        caller: ActorId,
    },
    /// The call is for clients of a context.
    #[error("this client is of no context: make one with `ContextHandle::client`")]
    NoContext,
    /// Another job has its unique name; nothing was written.
    #[error(
        "job {id} is refused: job {other} has its unique name and has not ended; wait for that one, or let \
         this one replace it"
    )]
    NotUnique {
        /// The job.
        id: JobId,
        /// The one that has the name.
        other: JobId,
    },
    /// A queue takes no more jobs; nothing was written.
    #[error(
        "job {id} is refused: {queue} is being drained; submit it elsewhere, or resume the queue"
    )]
    Draining {
        /// The job.
        id: JobId,
        /// The queue.
        queue: String,
    },
    /// A queue does not take so large a job; nothing was written.
    #[error(
        "job {id} is refused: it takes {bytes} bytes, more than {queue} allows for one job; pass what is \
         large by reference, or raise the limit"
    )]
    TooLarge {
        /// The job.
        id: JobId,
        /// The queue.
        queue: String,
        /// The limit, in bytes.
        bytes: u64,
    },
    /// A queue holds as many as it may; nothing was written.
    #[error(
        "job {id} is refused: {queue} holds {} jobs already, which is its limit; submit it again when \
         workers have taken some, or raise the limit",
        limit.map_or_else(|| "as many".to_owned(), |limit| limit.to_string())
    )]
    QueueFull {
        /// The job.
        id: JobId,
        /// The queue.
        queue: String,
        /// The maximum length; none if it has changed meanwhile.
        limit: Option<u64>,
    },
    /// A job cannot wait for one that is not there; nothing was written.
    #[error(
        "job {id} is refused: it depends on job {prerequisite}, which does not exist; submit that one first"
    )]
    NoPrerequisite {
        /// The job.
        id: JobId,
        /// The unknown prerequisite.
        prerequisite: JobId,
    },
    /// The batch cannot be meant.
    #[error(transparent)]
    InvalidBatch(#[from] InvalidBatch),
    /// There is no such batch.
    #[error("there is no batch {id}: open it first; one that ended long ago is forgotten")]
    NoBatch {
        /// The batch.
        id: BatchId,
    },
    /// A batch takes no more jobs; nothing was written.
    #[error("batch {id} does not take it: {why}; open another batch")]
    BatchClosed {
        /// The batch.
        id: BatchId,
        /// Why not.
        why: &'static str,
    },
    /// The batch has not ended in the time that the caller would wait.
    #[error(
        "batch {id} has not ended after {waited:?}; it goes on, wait for it again or cancel it"
    )]
    BatchNotEnded {
        /// The batch.
        id: BatchId,
        /// The time waited.
        waited: Duration,
    },
    /// A queue still has jobs.
    #[error(
        "{queue} is not empty after {waited:?}: {} wait, {} are set aside, {} run, {} are to run again; it \
         takes no new ones, wait again, or resume it",
        depth.waiting, depth.set_aside, depth.running, depth.retrying
    )]
    NotDrained {
        /// The queue.
        queue: String,
        /// The time waited.
        waited: Duration,
        /// The unfinished jobs.
        depth: meshwork_broker::QueueDepth,
    },
    /// The job is no dead letter.
    #[error("job {id} is no dead letter: it has not failed for good")]
    NotDead {
        /// The job.
        id: JobId,
    },
    /// The worker has not ended a cancelled job within the caller's wait.
    #[error(
        "job {id} has not ended {waited:?} after its cancel request: {}; wait for it, or end it by force",
        worker.as_ref().map_or_else(
            || "no worker of Meshwork runs it".to_owned(),
            |worker| format!("worker {worker} is late, or has ended"),
        )
    )]
    NotStopped {
        /// The job.
        id: JobId,
        /// The time waited.
        waited: Duration,
        /// The worker that ran it last.
        worker: Option<String>,
    },
    /// There is no such job.
    #[error("there is no job {id}")]
    NoJob {
        /// The job.
        id: JobId,
    },
    /// The job ended in error.
    #[error("job {id} failed: {message}")]
    Failed {
        /// The job.
        id: JobId,
        /// Its `error`.
        message: String,
        /// The traceback, if the language has one.
        traceback: Option<String>,
    },
    /// The job has not ended in the time that the caller would wait.
    #[error("job {id} has not ended{}; it goes on, wait for it again", after(*waited))]
    NotEnded {
        /// The job.
        id: JobId,
        /// The time waited.
        waited: Duration,
    },
    /// The recurrence of a schedule is invalid.
    #[error(transparent)]
    Rhythm(#[from] RhythmError),
    /// A time zone is wrong.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// There is a schedule of that name already; nothing was written.
    #[error("there is a schedule {name} already: take another name, or replace that one")]
    ScheduleExists {
        /// The schedule.
        name: ScheduleName,
    },
    /// There is no such schedule.
    #[error("there is no schedule {name}")]
    NoSchedule {
        /// The schedule.
        name: ScheduleName,
    },
    /// A later release wrote the schedule, or somebody else.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The schedule does not run beside itself; nothing was written.
    #[error(
        "schedule {name} is not run: its job {last} has not ended, and it is not to run beside it"
    )]
    Overlaps {
        /// The schedule.
        name: ScheduleName,
        /// The job.
        last: JobId,
    },
    /// The job of the schedule is not accepted; nothing was written.
    #[error("schedule {name} is not run: {why}")]
    ScheduleRefused {
        /// The schedule.
        name: ScheduleName,
        /// Why not.
        why: String,
    },
    /// A worker that nothing can be sent to.
    #[error("the worker has no runner: name a script type or add a handler")]
    NothingToRun,
    /// A setting of a worker is out of its limits; nothing was started.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A script type that nothing here runs.
    #[error("`{script_type}` is no script type that this program runs; it runs {known}")]
    UnknownType {
        /// The type.
        script_type: String,
        /// The known ones.
        known: String,
    },
    /// A folder cannot hold log files.
    #[error(transparent)]
    LogDir(#[from] LogDirError),
    /// Another live worker has the name.
    #[error(
        "there is a {name} already: process {pid} on host {hostname}, since {since}; stop that one, or give \
         this one another name"
    )]
    NameTaken {
        /// Type, instance and group.
        name: String,
        /// The other's process.
        pid: String,
        /// Its host.
        hostname: String,
        /// The time of its start.
        since: String,
    },
    /// The system did not give a worker what it needs.
    #[error("cannot start the worker: {0}")]
    Start(#[from] std::io::Error),
}

impl From<meshwork_broker::Error> for Error {
    fn from(error: meshwork_broker::Error) -> Self {
        match error {
            meshwork_broker::Error::Invalid(invalid) => Self::Invalid(invalid),
            meshwork_broker::Error::InvalidBatch(invalid) => Self::InvalidBatch(invalid),
            other => Self::Broker(other),
        }
    }
}

/// The time waited, as text; empty if none.
fn after(waited: Duration) -> String {
    match waited.is_zero() {
        true => " yet".to_owned(),
        false => format!(" after {waited:?}"),
    }
}
