//! Protocol: what the engine has to know of the system whose jobs it runs. docs/adding-a-protocol.md is the guide.

use std::borrow::Cow;
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
use tracing::Span;

use super::config::Config;
use super::exchange::{Exchanged, FetchRequest};
use super::in_flight::InFlight;
use super::task::Completion;
use crate::Batch;
use crate::failure::Reason;
use crate::runner::{Inputs, Runner, Submitter};
use crate::span::Subject;

/// The queues that a worker takes from.
pub trait Queues: Send + Sync + 'static {
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
pub struct Prepared {
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

impl Prepared {
    /// A run of `job` by `runner`, for `timeout` at most: then the runner has [`Config::cancel_grace`] to end it, and is cut
    /// off five seconds later.
    #[must_use]
    pub fn new(runner: Arc<dyn Runner>, job: Arc<Job>, timeout: Duration) -> Self {
        Self {
            runner,
            job,
            timeout,
            inputs: Inputs::default(),
            submitter: None,
            batch: None,
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("job", &self.job.id)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The next step with a job that was claimed.
#[derive(Debug)]
pub enum Step {
    /// The job is run.
    Run(Box<Prepared>),
    /// The job ends without a run.
    End(Report),
    /// The protocol has dealt with the job.
    Settled,
    /// A call failed: the step is repeated after a pause, if that may succeed.
    Again(Error),
}

/// The outcome of a wait.
#[derive(Debug)]
pub enum Waited<J> {
    /// Nothing came in time.
    Nothing,
    /// An id is in the prefetch list of this worker: the next claim finds it.
    Hint,
    /// A job came, and belongs to this worker. Only where [`Protocol::TAKES`].
    Job(J),
}

impl<J> Waited<J> {
    /// Of a wait that brings no job.
    #[must_use]
    pub fn hint(came: bool) -> Self {
        match came {
            true => Self::Hint,
            false => Self::Nothing,
        }
    }
}

/// The jobs of a worker, for what takes over jobs of dead workers.
pub trait Intake<J>: Send + Sync {
    /// The number of free slots.
    fn free(&self) -> usize;
    /// Calls `see` with every job in flight.
    fn each(&self, see: &mut dyn FnMut(&J));
    /// Takes a job in that belongs to this worker: it is run as one that was claimed. If no slot is free for it within one
    /// heartbeat interval, or the worker stops, it is released.
    fn take(&self, job: J);
}

/// A failed run, as it is reported.
#[derive(Debug)]
pub struct FailedRun<'a> {
    /// The failure: its kind, and the error in words.
    pub failure: &'a Failure,
    /// Error and details, for protocols that keep one text.
    pub(crate) reason: &'a Reason,
    /// The end of its output, at most as much as a job keeps.
    pub stdout: &'a [u8],
    /// The same of stderr.
    pub stderr: &'a [u8],
    /// Duration of the run.
    pub took: Duration,
}

impl FailedRun<'_> {
    /// Error and details as one text of at most `most` bytes.
    #[must_use]
    pub fn text(&self, most: usize) -> String {
        self.reason.whole(most)
    }
}

/// The outcome of a reported failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// The job runs again. The number is that of the run that failed, from 1: see [`Protocol`] on attempts.
    Retried(u32),
    /// The job has failed for good, with the run of this number.
    Dead(u32),
    /// The job does not belong to this worker any more; nothing was changed.
    Stale,
}

/// The outcome of a renewal.
#[derive(Debug, Default)]
pub struct Renewed {
    /// The places, among the jobs that were to be renewed, of those that belong to this worker no more.
    pub gone: Vec<usize>,
    /// The places of those that somebody wants to be cancelled.
    pub cancel: Vec<usize>,
    /// The queues for which the server did not take the registration: nothing is taken from them until it does.
    pub refused: Vec<String>,
}

/// A system of jobs, for one worker. [`start`](super::start) runs it.
///
/// **Repeats.** Every call may be repeated, since its answer may have been lost with a connection; so each has to change nothing
/// the second time. All futures may be dropped at any point. Calls that fail with an error that
/// [is temporary](Error::is_temporary) are repeated after a pause of up to some seconds, reports for ten minutes; other errors are
/// logged, and the job comes back when its lease has ended.
///
/// **Leases.** A job that a call gave belongs to this worker for [`Config::lease`] and is renewed three times as often. A report
/// has to prove that it still does: after the lease, another worker may have the job.
///
/// **Threads.** `connect`, `renew`, `load`, `requests`, `reclaim`, `maintain` and `depart` are called on the heartbeat thread, over its
/// connection. All others are called on the runtime on which the worker was started, several at once.
///
/// **Attempts.** An attempt is a run that was begun and reported. Its number is that of the failed runs before it, plus one. A
/// run whose worker was lost is no attempt: losses are counted apart.
pub trait Protocol: Sized + Send + Sync + 'static {
    /// A job under a lease.
    type Job: Clone + std::fmt::Debug + Send + Sync + 'static;
    /// The connection of the heartbeat thread.
    type Conn: Send + Sync + 'static;
    /// A connection for blocking waits; a clone is the same connection.
    type WaitConn: Clone + Send + Sync + 'static;
    /// The queues that a worker takes from.
    type Queues: Queues;

    /// True if output and progress of a run are stored while it runs.
    const KEEPS_LOGS: bool = false;
    /// True if jobs arrive without a claim: from waits, and from the search for dead workers' jobs. A worker takes
    /// none before its registration.
    const TAKES: bool = false;
    /// True if the results of several runs share a call. Otherwise the task of each run stores its own at once.
    const TOGETHER: bool = true;
    /// The most waits under way for one queue, one behind the other on its connection. No more than slots are free.
    const WAITS: usize = 1;

    /// The worker's name with its incarnation.
    fn worker(&self) -> &str;
    /// The log of failed calls over this connection.
    fn outages(&self) -> &Outages;
    /// The queues that the worker takes from now.
    fn queues(&self) -> &watch::Sender<Arc<Self::Queues>>;
    /// True if two queues share their limits, so that the end of a job of one may free a slot of the other.
    fn share_limits(&self, one: &str, other: &str) -> bool {
        one == other
    }

    /// The id of a job, for the log.
    fn id(job: &Self::Job) -> Cow<'_, str>;
    /// The queue from which a job was claimed.
    fn queue(job: &Self::Job) -> &str;
    /// Bytes that a report sends beside the result.
    fn record_bytes(_job: &Self::Job) -> usize {
        0
    }
    /// True if no other job may run on this worker beside the job.
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
    fn place(&self, queue: &str) -> QueueParts {
        QueueParts {
            script_type: queue.to_owned(),
            group: None,
            instance: None,
            priority: Priority::Normal,
        }
    }
    /// The kind of a job, for metrics; none if its run is not counted.
    fn kind(&self, job: &Self::Job) -> Option<String> {
        Some(Self::queue(job).to_owned())
    }
    /// The span of a run, and the trace that what it calls belongs to.
    fn span(&self, job: &Self::Job) -> (Span, Option<TraceContext>) {
        let subject = Subject {
            job: &Self::id(job),
            queue: Self::queue(job),
            ..Subject::default()
        };
        subject.run(self.worker(), None)
    }
    /// The runner of a job, as far as that is known without a call, to announce its runs.
    fn runner(&self, _job: &Self::Job) -> Option<&Arc<dyn Runner>> {
        None
    }

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
    fn encode(&self, _job: &Self::Job, report: Report) -> Report {
        report
    }
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

    /// Makes a connection for the waits of one queue.
    fn wait_conn(&self) -> impl Future<Output = Result<Self::WaitConn, Error>> + Send;
    /// Returns when ids of a queue may be waited for.
    fn may_wait(&self, _queue: &str) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    /// Waits for an id or a job of a queue for `most`. It begins when the waits sent before on the connection are over, which
    /// may take `before`.
    fn wait(
        &self,
        conn: &Self::WaitConn,
        queue: &str,
        most: Duration,
        before: Duration,
    ) -> impl Future<Output = Result<Waited<Self::Job>, Error>> + Send;
    /// Ends the wait on a connection. Called every 20 ms until it has ended, when the worker stops; if it does nothing, the
    /// worker waits for the wait, two seconds at most.
    fn end_wait(&self, _conn: &Self::WaitConn) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Ends the registration for queues, and returns what was prefetched from them. Called when nothing comes any more; jobs in
    /// flight still run and are renewed.
    fn deregister(&self, _queues: &[String]) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// The connection of the heartbeat thread.
    fn connect(&self) -> impl Future<Output = Result<Self::Conn, Error>> + Send;
    /// Renews the leases of `jobs` for `lease` from now, and the registration for `queues`; without queues, the worker has been
    /// deregistered. It may take one heartbeat interval, a third of the lease.
    fn renew(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        jobs: &[Self::Job],
        queues: Option<&Self::Queues>,
    ) -> impl Future<Output = Result<Renewed, Error>> + Send;
    /// Prepares a new connection, once, after its first renewal.
    fn load(&self, _conn: &Self::Conn) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Calls `obey` with each request to this worker, and forgets the request after that. Called after each renewal. Without
    /// this call, a worker of the protocol knows no requests.
    fn requests(
        &self,
        _conn: &Self::Conn,
        _obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
    /// Returns the jobs of dead workers to their queues, or takes them in. Called after each renewal; bounded.
    fn reclaim(
        &self,
        conn: &Self::Conn,
        lease: Duration,
        intake: &dyn Intake<Self::Job>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
    /// Does what workers do beside their jobs, until the connection breaks.
    fn maintain(
        &self,
        _conn: &Self::Conn,
        _config: &Config,
        _in_flight: &InFlight<Self::Job>,
    ) -> impl Future<Output = Result<Infallible, Error>> + Send {
        std::future::pending()
    }
    /// Frees the name of the worker, as the last step of its shutdown.
    fn depart(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}
