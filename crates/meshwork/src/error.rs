//! Errors of the library.

use std::time::Duration;

use meshwork_broker::conn::{ConnectError, TargetError};
use meshwork_model::batch::InvalidBatch;
use meshwork_model::job::Invalid;
use meshwork_model::keys::context::ActorId;
use meshwork_model::name::{BatchId, JobId, NameError, ScheduleName};
use meshwork_model::number::counted;
use meshwork_model::schedule::Unreadable;
use meshwork_model::schedule::timing::RecurrenceError;
use meshwork_model::schedule::zone::ZoneError;
use meshwork_model::time::duration_of;
use meshwork_model::worker_request::WorkerRequest;

use crate::client::InvalidCursor;

use meshwork_runtime::{CannotConfine, NoLauncher, NoPolicy, ScriptError};
use meshwork_worker::{InvalidSetting, LogDirError, StartError};

/// Error of a call.
///
/// Each operation returns a part of the variants, and [`Broker`](Self::Broker) if a call to the store fails:
///
/// | operation | variants |
/// |---|---|
/// | Connect: [`Client::open`](crate::Client::open), [`ClientBuilder`](crate::ClientBuilder) | [`Target`](Self::Target), [`TwoStores`](Self::TwoStores), [`Connect`](Self::Connect), [`Name`](Self::Name) |
/// | Enqueue: [`Client::enqueue`](crate::Client::enqueue), [`Batch::add`](crate::Batch::add) | [`Name`](Self::Name), [`Invalid`](Self::Invalid), [`Payload`](Self::Payload), [`JobExists`](Self::JobExists), [`NoJobNumber`](Self::NoJobNumber), [`DuplicateUniqueKey`](Self::DuplicateUniqueKey), [`QueueDraining`](Self::QueueDraining), [`QueueFull`](Self::QueueFull), [`PayloadTooLarge`](Self::PayloadTooLarge), [`UnknownPrerequisite`](Self::UnknownPrerequisite), [`BatchNotFound`](Self::BatchNotFound), [`BatchClosed`](Self::BatchClosed) |
/// | Wait: [`JobHandle::result`](crate::JobHandle::result), [`Client::result`](crate::Client::result) | [`JobNotFound`](Self::JobNotFound), [`Failed`](Self::Failed), [`JobWaitTimeout`](Self::JobWaitTimeout), [`Payload`](Self::Payload) |
/// | Enqueue and wait: [`Client::call`](crate::Client::call), [`Client::run`](crate::Client::run) | those of both |
/// | Read and change jobs | [`JobNotFound`](Self::JobNotFound), [`NotDeadLettered`](Self::NotDeadLettered), [`CancelTimeout`](Self::CancelTimeout), [`Cursor`](Self::Cursor) |
/// | Start a worker: [`Worker::start`](crate::Worker::start), [`Worker::run_until`](crate::Worker::run_until) | [`NoHandlers`](Self::NoHandlers), [`NoFlows`](Self::NoFlows), [`TwoHandlers`](Self::TwoHandlers), [`HandlerArgument`](Self::HandlerArgument), [`UnknownType`](Self::UnknownType), [`Name`](Self::Name), [`Setting`](Self::Setting), [`NoLauncher`](Self::NoLauncher), [`CannotConfine`](Self::CannotConfine), [`LogDir`](Self::LogDir), [`WorkerNameTaken`](Self::WorkerNameTaken), [`PoolTooLarge`](Self::PoolTooLarge), [`NoContext`](Self::NoContext), [`Start`](Self::Start) |
/// | Schedules | [`Recurrence`](Self::Recurrence), [`Zone`](Self::Zone), [`ScheduleExists`](Self::ScheduleExists), [`NoSchedule`](Self::NoSchedule), [`Unreadable`](Self::Unreadable), [`Overlaps`](Self::Overlaps), [`ScheduleRefused`](Self::ScheduleRefused), [`Payload`](Self::Payload) |
/// | Batches | [`InvalidBatch`](Self::InvalidBatch), [`BatchNotFound`](Self::BatchNotFound), [`BatchClosed`](Self::BatchClosed), [`BatchWaitTimeout`](Self::BatchWaitTimeout) |
/// | Queues and workers | [`DrainTimeout`](Self::DrainTimeout), [`RequestTimeout`](Self::RequestTimeout) |
/// | Check a script: [`JobRequest::check_syntax`](crate::JobRequest::check_syntax) | [`Invalid`](Self::Invalid), [`Script`](Self::Script) |
/// | [`testing::drain`](crate::testing::drain) | [`StillBusy`](Self::StillBusy) |
///
/// ```
/// use meshwork::{Client, Error};
///
/// #[meshwork::job(output = u64)]
/// struct Pay { order: u64 }
///
/// async fn pay(client: &Client, order: u64) -> Result<Option<u64>, Error> {
///     match client.call(Pay { order }).await {
///         Ok(paid) => Ok(Some(paid)),
///         Err(Error::QueueFull { .. } | Error::JobWaitTimeout { .. }) => Ok(None),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The URL is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A [`ClientBuilder`](crate::ClientBuilder) has a URL and a folder.
    #[error("both a URL and a folder are given: a client has one store")]
    TwoStores,
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The job is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The script is refused.
    #[error("job {id}: {source}")]
    Script {
        /// Id of the job.
        id: JobId,
        /// The fault.
        source: ScriptError,
    },
    /// A call to the server failed.
    #[error(transparent)]
    Broker(meshwork_broker::Error),
    /// A cursor is not that of a page of this list.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// A payload or result does not fit the expected type.
    #[error("the {what} of job {id} does not fit its type: {source}")]
    Payload {
        /// `payload` or `result`.
        what: &'static str,
        /// Id of the job.
        id: JobId,
        /// The position of the mismatch.
        source: serde_json::Error,
    },
    /// A worker has not obeyed a request in time. The request was withdrawn.
    #[error(
        "worker {worker} did not obey `{request}` within {}; the request is withdrawn: see `meshwork worker list`, or wait \
         longer if its lease is long", duration_of(*waited)
    )]
    RequestTimeout {
        /// Name of the worker, with its incarnation.
        worker: String,
        /// The request.
        request: WorkerRequest,
        /// Time of the wait.
        waited: Duration,
    },
    /// The id exists.
    #[error("there is a job {id} already: take another id, or look at that one")]
    JobExists {
        /// Id of the job.
        id: JobId,
    },
    /// A pool has too many contexts; nothing was started.
    #[error(
        "one process serves at most {} contexts, not {given}: serve the others by further processes",
        crate::MAX_POOL
    )]
    PoolTooLarge {
        /// Number of contexts.
        given: usize,
    },
    /// All numbers of the caller's jobs are used in this context; nothing was written.
    #[error("no number is left for another job of actor {caller}: delete some that have ended")]
    NoJobNumber {
        /// The caller.
        caller: ActorId,
    },
    /// Jobs of a test still wait or run.
    #[error("jobs still wait or run after {}", duration_of(*waited))]
    StillBusy {
        /// Time of the wait.
        waited: Duration,
    },
    /// Two handlers of a worker have jobs of one name.
    #[error("two handlers run jobs of the type {name}: give each type of jobs a name of its own")]
    TwoHandlers {
        /// The name.
        name: &'static str,
    },
    /// A handler of a worker needs an argument that the worker lacks.
    #[error("the handler of {name} cannot run: {what}")]
    HandlerArgument {
        /// Type of its jobs.
        name: &'static str,
        /// The missing argument.
        what: String,
    },
    /// The call needs a client of a context.
    #[error("this client is of no context: make one with `ContextHandle::client`")]
    NoContext,
    /// Another job has the unique name; nothing was written.
    #[error(
        "job {id} is refused: job {other} has its unique name until it has ended, or for its time; wait for that one, or let \
         this one replace it"
    )]
    DuplicateUniqueKey {
        /// Id of the refused job.
        id: JobId,
        /// Id of the job that has the name.
        other: JobId,
    },
    /// The queue drains; nothing was written.
    #[error(
        "job {id} is refused: the queue {queue} is being drained; submit it elsewhere, or resume the queue"
    )]
    QueueDraining {
        /// Id of the job.
        id: JobId,
        /// Name of the queue.
        queue: String,
    },
    /// The job is larger than its queue allows; nothing was written.
    #[error(
        "job {id} is refused: it takes {bytes} bytes, more than the queue {queue} allows for one job; pass what is \
         large by reference, or raise the limit"
    )]
    PayloadTooLarge {
        /// Id of the job.
        id: JobId,
        /// Name of the queue.
        queue: String,
        /// Size of the job, in bytes.
        bytes: u64,
    },
    /// The queue is full; nothing was written.
    #[error(
        "job {id} is refused: the queue {queue} holds {} already, which is its limit; submit it again when \
         workers have taken some, or raise the limit",
        limit.map_or_else(|| "as many jobs".to_owned(), |limit| counted(limit, "job"))
    )]
    QueueFull {
        /// Id of the job.
        id: JobId,
        /// Name of the queue.
        queue: String,
        /// Its maximum length; `None` if it has changed meanwhile.
        limit: Option<u64>,
    },
    /// A prerequisite does not exist; nothing was written.
    #[error(
        "job {id} is refused: it depends on job {prerequisite}, which does not exist; submit that one first"
    )]
    UnknownPrerequisite {
        /// Id of the job.
        id: JobId,
        /// Id of the missing prerequisite.
        prerequisite: JobId,
    },
    /// The batch is invalid.
    #[error(transparent)]
    InvalidBatch(#[from] InvalidBatch),
    /// The batch does not exist.
    #[error("there is no batch {id}: open it first; one that ended long ago is forgotten")]
    BatchNotFound {
        /// Id of the batch.
        id: BatchId,
    },
    /// The batch accepts no more jobs; nothing was written.
    #[error("batch {id} does not take it: {why}; open another batch")]
    BatchClosed {
        /// Id of the batch.
        id: BatchId,
        /// Reason.
        why: &'static str,
    },
    /// The batch has not ended within the caller's wait.
    #[error("batch {id} has not ended after {}: wait for it again, or cancel it", duration_of(*waited))]
    BatchWaitTimeout {
        /// Id of the batch.
        id: BatchId,
        /// Time of the wait.
        waited: Duration,
    },
    /// The queue was not empty within the caller's wait.
    #[error(
        "the queue {queue} is not empty after {}: {} wait, {} are set aside, {} run, {} are to run again; it \
         takes no new ones, wait again, or resume it",
        duration_of(*waited), depth.waiting, depth.set_aside, depth.running, depth.retrying
    )]
    DrainTimeout {
        /// Name of the queue.
        queue: String,
        /// Time of the wait.
        waited: Duration,
        /// Unfinished jobs.
        depth: meshwork_broker::QueueDepth,
    },
    /// The job is no dead letter.
    #[error("job {id} is no dead letter: it has not failed for good")]
    NotDeadLettered {
        /// Id of the job.
        id: JobId,
    },
    /// The worker has not ended a cancelled job within the caller's wait.
    #[error(
        "job {id} has not ended {} after its cancel request: {}; wait for it, or end it by force",
        duration_of(*waited),
        worker.as_ref().map_or_else(
            || "no worker of Meshwork runs it".to_owned(),
            |worker| format!("worker {worker} is late, or has ended"),
        )
    )]
    CancelTimeout {
        /// Id of the job.
        id: JobId,
        /// Time of the wait.
        waited: Duration,
        /// The worker that ran the job last.
        worker: Option<String>,
    },
    /// The job does not exist.
    #[error("there is no job {id}")]
    JobNotFound {
        /// Id of the job.
        id: JobId,
    },
    /// The job ended in error.
    #[error("job {id} failed: {message}")]
    Failed {
        /// Id of the job.
        id: JobId,
        /// Error of the job.
        message: String,
        /// Traceback, if the language has one.
        traceback: Option<String>,
    },
    /// The job has not ended within the caller's wait.
    #[error("job {id} has not ended{}: wait for it again", after(*waited))]
    JobWaitTimeout {
        /// Id of the job.
        id: JobId,
        /// Time of the wait.
        waited: Duration,
    },
    /// The recurrence of a schedule is invalid.
    #[error(transparent)]
    Recurrence(#[from] RecurrenceError),
    /// The time zone is unknown.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The name of the schedule exists; nothing was written.
    #[error("there is a schedule {name} already: take another name, or replace that one")]
    ScheduleExists {
        /// Name of the schedule.
        name: ScheduleName,
    },
    /// The schedule does not exist.
    #[error("there is no schedule {name}")]
    NoSchedule {
        /// Name of the schedule.
        name: ScheduleName,
    },
    /// The schedule cannot be read: a later release or another program wrote it.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The last job of the schedule has not ended, and its policy is to skip; nothing was written.
    #[error(
        "schedule {name} is not run: its job {last} has not ended, and its overlap policy allows one job at a time"
    )]
    Overlaps {
        /// Name of the schedule.
        name: ScheduleName,
        /// Id of that job.
        last: JobId,
    },
    /// The job of the schedule is refused; nothing was written.
    #[error("schedule {name} is not run: {why}")]
    ScheduleRefused {
        /// Name of the schedule.
        name: ScheduleName,
        /// Reason.
        why: String,
    },
    /// The jobs of a context may belong to flows, and the program was built without them.
    #[error("a worker of a context needs the feature `scripts` of the crate meshwork")]
    NoFlows,
    /// The worker has no handler.
    #[error("the worker has no runtime: name a script type or add a handler")]
    NoHandlers,
    /// A setting of a worker is outside of its limits; nothing was started.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The worker's sandbox needs a launcher, and the program has none.
    #[error(transparent)]
    NoLauncher(#[from] NoLauncher),
    /// The host cannot confine scripts as the worker's sandbox asks.
    #[error(transparent)]
    CannotConfine(#[from] CannotConfine),
    /// No runtime has this script type.
    #[error("`{script_type}` is no script type that this program runs; it runs {known}")]
    UnknownType {
        /// Script type.
        script_type: String,
        /// Known script types.
        known: String,
    },
    /// A folder for log files is refused.
    #[error(transparent)]
    LogDir(#[from] LogDirError),
    /// Another live worker has the name.
    #[error(
        "there is a {name} already: process {pid} on host {hostname}, since {since}; stop that one, or give \
         this one another name"
    )]
    WorkerNameTaken {
        /// Type, instance and group.
        name: String,
        /// Pid of the other worker.
        pid: String,
        /// Its host.
        hostname: String,
        /// Time of its start.
        since: String,
        /// True if its process runs on this host. Otherwise it may have ended, and its registration expires.
        certain: bool,
    },
    /// The system refused a resource for the worker.
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

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Setting(error) => Self::Setting(error),
            StartError::Thread(error) => Self::Start(error),
        }
    }
}

impl From<NoPolicy> for Error {
    fn from(error: NoPolicy) -> Self {
        match error {
            NoPolicy::NoLauncher(error) => Self::NoLauncher(error),
            NoPolicy::CannotConfine(error) => Self::CannotConfine(error),
        }
    }
}

/// Returns the time of the wait as text; empty for none.
fn after(waited: Duration) -> String {
    match waited.is_zero() {
        true => " yet".to_owned(),
        false => format!(" after {}", duration_of(waited)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_variant_belongs_to_an_operation() {
        let source = include_str!("error.rs");
        let (docs, after) = source.split_once("pub enum Error {").unwrap();
        let (variants, _) = after.split_once("\n}\n").unwrap();
        let names = variants.lines().filter_map(|line| {
            let name = line.strip_prefix("    ")?;
            let end = name.find(|c: char| !c.is_alphanumeric())?;
            name.starts_with(char::is_uppercase).then(|| &name[..end])
        });
        let names: Vec<_> = names.collect();
        assert!(names.len() > 40, "{names:?}");
        for name in names {
            assert!(docs.contains(&format!("](Self::{name})")), "{name}");
        }
    }
}
