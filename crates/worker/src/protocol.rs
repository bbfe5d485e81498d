//! Protocol: the interface between the engine and the system whose jobs it runs. The guide is
//! docs/adding-a-protocol.md.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Error, Line, Logged, Outages};
use meshwork_model::job::Job;
use meshwork_model::keys::hero::QueueParts;
use meshwork_model::outcome::{Failure, Report};
use meshwork_model::route::Priority;
use meshwork_model::trace::TraceContext;
use meshwork_model::worker_request::WorkerRequest;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Span;

use super::config::Config;
use super::exchange::{Exchanged, FetchRequest};
use super::fetched::Fetched;
use super::in_flight::InFlight;
use super::task::Completion;
use crate::failure::Reason;
use crate::span::Subject;
use meshwork_model::sandbox::RunUsage;
use meshwork_runtime::{Run, Runtime};

/// Queues from which a worker takes jobs.
pub trait Queues: Send + Sync + 'static {
    /// Returns the names of all queues.
    fn names(&self) -> &[String];
    /// Returns the queues that need a blocking read.
    fn waited(&self) -> Vec<String>;
}

impl Queues for Vec<String> {
    fn names(&self) -> &[String] {
        self
    }

    fn waited(&self) -> Vec<String> {
        self.clone()
    }
}

/// A job that is ready to run.
pub struct Prepared {
    /// The runtime of the run.
    pub runtime: Arc<dyn Runtime>,
    /// The run, to which the worker adds its deadline, lease and stop signal.
    pub run: Run,
    /// Longest time of the run.
    pub timeout: Duration,
}

impl Prepared {
    /// Creates a run of `job` by `runtime`. After `timeout` the runtime has [`Config::cancel_grace`] to end it, and five
    /// seconds later the run is aborted.
    #[must_use]
    pub fn new(runtime: Arc<dyn Runtime>, job: Arc<Job>, timeout: Duration) -> Self {
        Self {
            runtime,
            run: Run::new(job, Instant::now() + timeout),
            timeout,
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("job", &self.run.job.id)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The next step for a claimed job.
#[derive(Debug)]
pub enum Step {
    /// The job is run.
    Run(Box<Prepared>),
    /// The job ends without a run.
    End(Report),
    /// The protocol has dealt with the job already.
    Settled,
    /// A call failed. A temporary error is repeated after a pause.
    Again(Error),
}

/// The outcome of a blocking read.
#[derive(Debug)]
pub enum Waited<J> {
    /// Nothing arrived in time.
    Nothing,
    /// An id is in the prefetch list of this worker. The next claim takes it.
    Hint,
    /// The read has claimed a job. If it says that there are more, the next claim takes them.
    Claimed(Fetched<J>),
    /// A job arrived and belongs to this worker. Only with [`Protocol::PUSH_DELIVERY`].
    Job(J),
}

impl<J> Waited<J> {
    /// Returns the outcome of a read that returns no jobs: a hint if an id arrived.
    #[must_use]
    pub fn hint(came: bool) -> Self {
        match came {
            true => Self::Hint,
            false => Self::Nothing,
        }
    }
}

/// Time for which a check of rights counts.
pub const RIGHTS_FOR: Duration = Duration::from_secs(60);

/// Entry for jobs that a protocol reclaims from dead workers for this worker.
pub trait Intake<J>: Send + Sync {
    /// Returns the number of free slots.
    fn free(&self) -> usize;
    /// Calls `see` with every job in flight.
    fn each(&self, see: &mut dyn FnMut(&J));
    /// Runs a job that belongs to this worker, as a claimed one. The job is released if no slot is free within one
    /// heartbeat interval, or the worker stops.
    fn take(&self, job: J);
}

/// A failed run to report.
#[derive(Debug)]
pub struct FailedRun<'a> {
    /// Kind and text of the failure.
    pub failure: &'a Failure,
    /// Error and details, for protocols that store one text.
    pub reason: &'a Reason,
    /// End of the run's stdout, at most as long as a record keeps.
    pub stdout: &'a [u8],
    /// End of the run's stderr, with the same limit.
    pub stderr: &'a [u8],
    /// Duration of the run.
    pub took: Duration,
}

impl FailedRun<'_> {
    /// Returns error and details as one text of at most `most` bytes.
    #[must_use]
    pub fn text(&self, most: usize) -> String {
        self.reason.whole(most)
    }
}

/// The outcome of a reported failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The job runs again. The number is that of the failed attempt, from 1: see [`Protocol`] on attempts.
    Retried(u32),
    /// The job has failed for good, with the attempt of this number.
    Dead(u32),
    /// The job does not belong to this worker any more; nothing was changed.
    Stale,
}

/// The outcome of a renewal.
#[derive(Debug, Default)]
pub struct Renewed {
    /// Indexes, among the jobs to renew, of those that do not belong to this worker any more.
    pub gone: Vec<usize>,
    /// Indexes of the jobs to cancel.
    pub cancel: Vec<usize>,
    /// Queues for which the server refused the registration. Nothing is claimed from them until it accepts.
    pub refused: Vec<String>,
}

/// A job system, for one worker. [`start`](super::start) runs it.
///
/// **Repeats.** Every call may be repeated, since its answer may be lost with the connection. So a repeated call must
/// change nothing. All futures may be dropped at any point. A call whose error [is temporary](Error::is_temporary) is
/// repeated after a pause of up to some seconds, reports for ten minutes. Other errors are logged, and the job returns
/// when its lease has expired.
///
/// **Leases.** A claimed job belongs to this worker for [`Config::lease`], and is renewed three times in each lease. A
/// report has to prove that the job still belongs to the worker: after the lease, another worker may have it.
///
/// **Threads.** `connect`, `renew`, `load`, `requests`, `reclaim`, `maintain` and `depart` are called on the heartbeat
/// thread, over its connection. All others are called on the runtime on which the worker was started, several at once.
///
/// **Attempts.** An attempt is a run that has started and was reported. Its number is that of the failed attempts
/// before it, plus one. A run whose worker was lost is no attempt; losses are counted separately.
pub trait Protocol: Sized + Send + Sync + 'static {
    /// A claimed job under a lease.
    type Job: Clone + std::fmt::Debug + Send + Sync + 'static;
    /// Connection of the heartbeat thread.
    type Conn: Send + Sync + 'static;
    /// Connection for blocking reads; clones share it.
    type WaitConn: Clone + Send + Sync + 'static;
    /// Queues from which a worker takes jobs.
    type Queues: Queues;

    /// True if output and progress of a run are stored while it runs.
    const KEEPS_LOGS: bool = false;
    /// True if jobs arrive without a claim: from blocking reads, and from reclaiming. A worker takes none before its
    /// registration.
    const PUSH_DELIVERY: bool = false;
    /// True if the results of several runs share a call. With false, each run's task stores its result at once.
    const BATCH_REPORTS: bool = true;
    /// Greatest number of pipelined blocking reads per queue. There are never more than free slots.
    const MAX_READS: usize = 1;

    /// Returns the worker's name with its incarnation.
    fn worker(&self) -> &str;
    /// Returns the log of failed calls over the worker's connection.
    fn outages(&self) -> &Outages;
    /// Returns the queues from which the worker takes jobs now.
    fn queues(&self) -> &watch::Sender<Arc<Self::Queues>>;
    /// Returns true if two queues share their limits, so that the end of a job of one may free a slot of the other.
    fn share_limits(&self, one: &str, other: &str) -> bool {
        one == other
    }

    /// Returns true if claims may return jobs beyond the free slots ([`FetchRequest::ahead`]).
    fn prefetches(&self) -> bool {
        false
    }

    /// Returns the id of a job, for logs.
    fn id(job: &Self::Job) -> Cow<'_, str>;
    /// Returns the queue from which a job was claimed.
    fn queue(job: &Self::Job) -> &str;
    /// Returns the number of bytes that a report sends besides the result.
    fn record_bytes(_job: &Self::Job) -> usize {
        0
    }
    /// Returns true if no other job may run on this worker beside the job.
    fn is_exclusive(_job: &Self::Job) -> bool {
        false
    }
    /// Returns the time since which a job has been ready, in milliseconds since 1970; `None` if its record does not
    /// say.
    fn ready_ms(_job: &Self::Job) -> Option<u64> {
        None
    }
    /// Returns the number of this attempt, from 1; `None` if only its failure tells.
    fn attempt(_job: &Self::Job) -> Option<u32> {
        None
    }
    /// Returns the labels of a queue, for metrics.
    fn place(&self, queue: &str) -> QueueParts {
        QueueParts {
            script_type: queue.to_owned(),
            group: None,
            instance: None,
            priority: Priority::Normal,
        }
    }
    /// Returns the name of the runtime of a queue's jobs.
    fn runtime(&self, queue: &str) -> String {
        self.place(queue).script_type
    }
    /// Returns the runtimes to check at the start, and after runs that could not start, by the names of their runtimes.
    fn runtimes(&self) -> Vec<(String, Arc<dyn Runtime>)> {
        Vec::new()
    }
    /// Records the runtimes that cannot start runs here, for clients.
    fn note_faults(&self, _faults: &BTreeMap<String, String>) {}
    /// Returns the type of a job, for metrics; `None` if its runs are not counted.
    fn kind(&self, job: &Self::Job) -> Option<String> {
        Some(Self::queue(job).to_owned())
    }
    /// Returns the span of a run, and the trace of the calls that it makes.
    fn span(&self, job: &Self::Job) -> (Span, Option<TraceContext>) {
        let subject = Subject {
            job: &Self::id(job),
            queue: Self::queue(job),
            ..Subject::default()
        };
        subject.run(self.worker(), None)
    }
    /// Returns the runtime of a job if it is known without a call, to reserve its place in a batch.
    fn runtime_of(&self, _job: &Self::Job) -> Option<&Arc<dyn Runtime>> {
        None
    }

    /// Stores results, then claims jobs without blocking. Leaves the claim out if storing fails.
    fn complete_and_claim(
        &self,
        config: &Config,
        results: &[Completion<Self::Job>],
        fetch: Option<&FetchRequest>,
    ) -> impl Future<Output = Exchanged<Self::Job>> + Send;
    /// Returns the next step for a claimed job.
    fn prepare(
        &self,
        config: &Config,
        job: &Arc<Self::Job>,
        trace: Option<&TraceContext>,
    ) -> impl Future<Output = Step> + Send;
    /// Returns a report, whose secrets are masked, in the form in which it is stored.
    fn encode(&self, _job: &Self::Job, report: Report) -> Report {
        report
    }
    /// Reports a failed run.
    fn fail(
        &self,
        job: &Self::Job,
        failed: &FailedRun<'_>,
    ) -> impl Future<Output = Result<Failed, Error>> + Send;
    /// Returns a job to the front of its queue without counting an attempt. Returns false if the job does not belong to
    /// this worker any more.
    fn release(&self, job: &Self::Job) -> impl Future<Output = Result<bool, Error>> + Send;
    /// Stores output and progress of a run. Called only if [`Protocol::KEEPS_LOGS`].
    fn log(
        &self,
        _job: &Self::Job,
        _lines: &[Line<'_>],
        _progress: Option<&str>,
    ) -> impl Future<Output = Result<Logged, Error>> + Send {
        std::future::ready(Ok(Logged::Stale))
    }

    /// Stores the sandbox and the resources of a run that started processes. Called only if [`Protocol::KEEPS_LOGS`].
    fn record_usage(
        &self,
        _job: &Self::Job,
        _usage: &RunUsage,
    ) -> impl Future<Output = Result<Logged, Error>> + Send {
        std::future::ready(Ok(Logged::Stale))
    }

    /// Returns true if the protocol looks for ids itself ([`Demand`](crate::capacity::demand::Demand)), without blocking reads.
    fn polls(&self) -> bool {
        false
    }
    /// Creates a connection for the blocking reads of one queue.
    fn wait_conn(&self) -> impl Future<Output = Result<Self::WaitConn, Error>> + Send;
    /// Waits until a blocking read of a queue may be sent.
    fn may_wait(&self, _queue: &str) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    /// Waits up to `most` for an id or a job of a queue. The time begins when earlier pipelined reads have ended, which
    /// may take `before`.
    fn wait(
        &self,
        config: &Config,
        conn: &Self::WaitConn,
        queue: &str,
        most: Duration,
        before: Duration,
    ) -> impl Future<Output = Result<Waited<Self::Job>, Error>> + Send;
    /// Ends the blocking read on a connection. When the worker stops, it is called every 20 ms until the read has
    /// ended. Without an implementation, the worker waits for the read, at most two seconds.
    fn end_wait(&self, _conn: &Self::WaitConn) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Ends the registration for queues, and returns prefetched ids to them. Called when no more jobs come; jobs in
    /// flight still run and are renewed.
    fn deregister(&self, _queues: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Connects the heartbeat thread.
    fn connect(&self) -> impl Future<Output = Result<Self::Conn, Error>> + Send;
    /// Renews the leases of `jobs` for `lease` from now, and the registration for `queues`. Without queues, the worker
    /// has been deregistered. Must return within one heartbeat interval, a third of the lease.
    fn renew(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        jobs: &[Self::Job],
        queues: Option<&Self::Queues>,
    ) -> impl Future<Output = Result<Renewed, Error>> + Send;
    /// Returns the time for which a check of rights counts. A call that is denied brings the next check forward.
    fn rights_for(&self) -> Duration {
        RIGHTS_FOR
    }
    /// Returns the commands that the worker's user may not send, although its calls need them; `None` if unknown.
    /// Called before each renewal.
    fn lacks(
        &self,
        _conn: &Self::Conn,
    ) -> impl Future<Output = Result<Option<Vec<&'static str>>, Error>> + Send {
        std::future::ready(Ok(None))
    }
    /// Prepares a new connection, after its first renewal.
    fn load(&self, _conn: &Self::Conn) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Calls `obey` with each request to this worker, then deletes the request. Called after each renewal. Without an
    /// implementation, workers cannot be made quiet or stopped by request.
    fn requests(
        &self,
        _conn: &Self::Conn,
        _obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Returns jobs of dead workers to their queues, or passes them to `intake`. Called after each renewal; must be
    /// bounded.
    fn reclaim(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        intake: &dyn Intake<Self::Job>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
    /// Does other maintenance, until the connection breaks.
    fn maintain(
        &self,
        _conn: &Self::Conn,
        _config: &Config,
        _in_flight: &InFlight<Self::Job>,
    ) -> impl Future<Output = Result<Infallible, Error>> + Send {
        std::future::pending()
    }
    /// Ends what runs have shared, after the last one.
    fn runs_ended(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    /// Frees the worker's name, as the last step of its shutdown.
    fn depart(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}
