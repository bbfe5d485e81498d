//! Protocol: what the engine has to know of the system whose jobs it runs.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{BlockingConn, Error, Line, Logged, Outages};
use meshwork_model::job::Job;
use meshwork_model::keys::hero::QueueParts;
use meshwork_model::outcome::{Failure, Report};
use meshwork_model::trace::TraceContext;
use tokio::sync::watch;
use tracing::Span;

use super::config::Config;
use super::exchange::{Exchanged, FetchRequest};
use super::in_flight::InFlight;
use super::task::Completion;
use crate::Batch;
use crate::failure::Reason;
use crate::runner::{Inputs, Runner, Submitter};

/// The queues that a worker takes from.
pub(crate) trait Queues: Send + Sync + 'static {
    /// All of them.
    fn names(&self) -> &[String];
    /// Those on which a connection waits.
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
pub(crate) struct Prepared {
    pub(crate) runner: Arc<dyn Runner>,
    /// The job as its runner takes it.
    pub(crate) job: Arc<Job>,
    /// The longest run.
    pub(crate) timeout: Duration,
    /// The results of the jobs that it has waited for.
    pub(crate) inputs: Inputs,
    /// Submits the children of the run.
    pub(crate) submitter: Option<Submitter>,
    /// The batch of the job.
    pub(crate) batch: Option<Batch>,
}

/// The next step with a job that was claimed.
pub(crate) enum Step {
    /// The job is run.
    Run(Box<Prepared>),
    /// The job ends without a run.
    End(Report),
    /// The protocol has dealt with the job.
    Settled,
    /// A call failed: the step is asked for again after a pause, if another try may succeed.
    Again(Error),
}

/// The outcome of a wait.
#[derive(Debug)]
pub(crate) enum Waited<J> {
    /// Nothing came in time.
    Nothing,
    /// An id is in the prefetch list of this worker: the next claim finds it.
    Hint,
    /// A job came, and belongs to this worker. Only where [`Protocol::TAKES`].
    Job(J),
}

impl<J> Waited<J> {
    /// Of a wait that brings no job.
    pub(crate) fn hint(came: bool) -> Self {
        match came {
            true => Self::Hint,
            false => Self::Nothing,
        }
    }
}

/// The jobs of a worker, for what takes over jobs of dead workers.
pub(crate) trait Intake<J>: Send + Sync {
    /// The number of free slots.
    fn free(&self) -> usize;
    /// Calls `see` with every job in flight.
    fn each(&self, see: &mut dyn FnMut(&J));
    /// Takes a job in that belongs to this worker: it is run as one that was claimed. If no slot is free for it within one
    /// heartbeat interval, or the worker stops, it is released.
    fn take(&self, job: J);
}

/// A failed run, as it is reported.
pub(crate) struct FailedRun<'a> {
    pub(crate) failure: &'a Failure,
    /// Error and details, for protocols that keep one text.
    pub(crate) reason: &'a Reason,
    pub(crate) stdout: &'a [u8],
    pub(crate) stderr: &'a [u8],
    /// How long the run took.
    pub(crate) took: Duration,
}

/// The outcome of a reported failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The job runs again. The number is that of the run that failed, from 1: see [`Protocol`] on attempts.
    Retried(u32),
    /// The job has failed for good, with the run of this number.
    Dead(u32),
    /// The job does not belong to this worker any more; nothing was changed.
    Stale,
}

/// The outcome of a renewal.
#[derive(Debug, Default)]
pub(crate) struct Renewed {
    /// The places, among the jobs that were to be renewed, of those that belong to this worker no more.
    pub(crate) gone: Vec<usize>,
    /// The places of those that somebody wants to be cancelled.
    pub(crate) cancel: Vec<usize>,
    /// The queues for which the server did not take the registration: nothing is taken from them until it does.
    pub(crate) refused: Vec<String>,
}

/// A queue protocol. All calls may be repeated, and all futures may be dropped at any point.
///
/// An attempt is a run that was begun and reported. Its number is that of the failed runs before it, plus one; a run whose
/// worker was lost has no number, and the job is given up for losses apart.
pub(crate) trait Protocol: Sized + Send + Sync + 'static {
    /// A job under a lease.
    type Job: Clone + std::fmt::Debug + Send + Sync + 'static;
    /// The connection of the heartbeat thread.
    type Conn: Send + Sync + 'static;
    /// The queues that a worker takes from.
    type Queues: Queues;

    /// Whether output and progress of a run are stored while it runs.
    const KEEPS_LOGS: bool = false;
    /// Whether jobs come without a claim: from waits, and from the look after dead workers. A worker takes none before it is
    /// registered.
    const TAKES: bool = false;
    /// Whether the results of several runs are stored in one call. Else each is stored at once, by the task that ran the job.
    const TOGETHER: bool = true;
    /// The most waits under way for one queue, one behind the other on its connection. No more than slots are free.
    const WAITS: usize = 1;

    /// The worker's name with its incarnation.
    fn worker(&self) -> &str;
    /// The log of failed calls over this connection.
    fn outages(&self) -> &Outages;
    /// The queues that the worker takes from now.
    fn queues(&self) -> &watch::Sender<Arc<Self::Queues>>;
    /// Whether two queues share their limits, so that a job of one that ends may free a slot of the other.
    fn share_limits(&self, one: &str, other: &str) -> bool;

    /// The id of a job, for the log.
    fn id(job: &Self::Job) -> Cow<'_, str>;
    /// The queue from which a job was claimed.
    fn queue(job: &Self::Job) -> &str;
    /// Bytes that a report sends beside the result.
    fn record_bytes(_job: &Self::Job) -> usize {
        0
    }
    /// Whether nothing else may run on this worker while the job does.
    fn is_exclusive(_job: &Self::Job) -> bool {
        false
    }
    /// The moment from which a job waited, in milliseconds since 1970; none if its record does not say.
    fn ready_ms(_job: &Self::Job) -> Option<u64> {
        None
    }
    /// The number of this run, from 1; none if only its failure tells.
    fn attempt(_job: &Self::Job) -> Option<u32> {
        None
    }
    /// The labels of a queue, for metrics.
    fn place(&self, queue: &str) -> QueueParts;
    /// The kind of a job, for metrics; none if its run is not counted.
    fn kind(&self, job: &Self::Job) -> Option<String>;
    /// The span of a run, and the trace that what it calls belongs to.
    fn span(&self, job: &Self::Job) -> (Span, Option<TraceContext>);
    /// The runner of a job, as far as that is known without a call.
    fn runner(&self, job: &Self::Job) -> Option<&Arc<dyn Runner>>;

    /// Stores results, then claims jobs, without waiting for any. A claim is left out if the results fail.
    fn exchange(
        &self,
        config: &Config,
        results: &[Completion<Self::Job>],
        fetch: Option<&FetchRequest>,
    ) -> impl Future<Output = Exchanged<Self::Job>> + Send;
    /// Decides on a job that was claimed.
    fn prepare(
        &self,
        config: &Config,
        job: &Arc<Self::Job>,
        trace: Option<&TraceContext>,
    ) -> impl Future<Output = Step> + Send;
    /// The report as it is stored, of a run whose secrets are masked already.
    fn encode(&self, job: &Self::Job, report: Report) -> Report;
    /// Reports a failed run.
    fn fail(
        &self,
        job: &Self::Job,
        failed: &FailedRun<'_>,
    ) -> impl Future<Output = Result<Failed, Error>> + Send;
    /// Returns a job to the front of its queue without counting an attempt. False if it belongs to this worker no more.
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

    /// A connection for blocking waits.
    fn blocking_conn(&self) -> impl Future<Output = Result<BlockingConn, Error>> + Send;
    /// Returns when ids of a queue may be waited for.
    fn may_wait(&self, _queue: &str) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    /// Waits for an id or a job of a queue for `most`. It begins when the waits sent before on the connection are over, which
    /// may take `before`.
    fn wait(
        &self,
        conn: &BlockingConn,
        queue: &str,
        most: Duration,
        before: Duration,
    ) -> impl Future<Output = Result<Waited<Self::Job>, Error>> + Send;
    /// Ends the wait on a connection.
    fn end_wait(&self, conn: &BlockingConn) -> impl Future<Output = Result<(), Error>> + Send;
    /// Ends the registration for queues, and returns what was prefetched from them.
    fn deregister(&self, queues: &[String]) -> impl Future<Output = Result<(), Error>> + Send;

    /// The connection of the heartbeat thread.
    fn connect(&self) -> impl Future<Output = Result<Self::Conn, Error>> + Send;
    /// Renews the leases of `jobs`, and the registration for `queues`.
    fn renew(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        jobs: &[Self::Job],
        queues: Option<&Self::Queues>,
    ) -> impl Future<Output = Result<Renewed, Error>> + Send;
    /// Prepares a new connection, once.
    fn load(&self, conn: &Self::Conn) -> impl Future<Output = Result<(), Error>> + Send;
    /// Returns the jobs of dead workers to their queues, or takes them in.
    fn reclaim(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        intake: &dyn Intake<Self::Job>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
    /// Does what workers do beside their jobs, until the connection breaks.
    fn maintain(
        &self,
        conn: &Self::Conn,
        config: &Config,
        in_flight: &InFlight<Self::Job>,
    ) -> impl Future<Output = Result<Infallible, Error>> + Send;
    /// Frees the name of the worker, as the last step of its shutdown.
    fn depart(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}
