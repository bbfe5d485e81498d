//! Handlers in Rust: functions from a payload to a result, both in JSON. The worker knows where jobs come from.

use meshwork_macros::boxed;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::batch::BatchEnd;
use meshwork_model::job::{Job, NewChild};
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::trace::TraceContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::Batch;
use meshwork_runtime::log::{LogSink, LogWriter, Stream};
use meshwork_runtime::{
    AddChild, AddChildError, Inputs, Run, Runtime, StopReason, add_child, failure_of, panic_text,
};

/// Time for a handler to drop its resources after [`JobContext::stop`] when its lease is lost. The job may already run
/// elsewhere.
pub(crate) const LOST_GRACE: Duration = Duration::from_secs(1);

/// Context of a handler's run.
///
/// ```
/// use meshwork::{JobContext, NewChild};
///
/// #[meshwork::job(output = usize)]
/// struct Import { files: Vec<String> }
///
/// async fn import(job: Import, context: JobContext) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
///     for (at, file) in job.files.iter().enumerate() {
///         context.log(&format!("job {} imports {file}, attempt {}", context.job_id, context.attempt));
///         context.add_child(&NewChild::new(serde_json::to_string(file)?)).await?;
///         context.progress(at as f64 / job.files.len() as f64, file);
///     }
///     Ok(job.files.len())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobContext {
    /// Id of the job, the same in each attempt.
    pub job_id: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The caller's id.
    pub caller_id: String,
    /// The caller's context id.
    pub context_id: String,
    /// Input of the job, besides the payload.
    pub input: Option<Arc<[u8]>>,
    /// Cancelled at the deadline, when a cancel is requested, and when the lease is lost. A handler that does not end
    /// within the worker's grace (1 s after a lost lease) is aborted at its next `.await`.
    pub stop: CancellationToken,
    /// Trace context of the run, to pass on to called services.
    pub trace: Option<TraceContext>,
    /// Results of the job's prerequisites; in a callback, of the jobs of its batch.
    pub inputs: Inputs,
    /// Batch of the job. While the job runs it may add jobs to it, also if it is sealed.
    pub batch: Option<Batch>,
    /// In a callback: the outcome of its batch when the callback was enqueued.
    pub batch_end: Option<BatchEnd>,
    child_adder: Option<Arc<dyn AddChild>>,
    log: LogSink,
    stdout: Arc<Mutex<LogWriter>>,
}

impl JobContext {
    /// Adds a child of this job and returns its id: the job's id, a dot, and the number of this call within the
    /// attempt. The same calls of a later attempt return the same ids and add nothing. So each attempt has to add
    /// the same children in the same order. Calls of one run are done one after another. A call waits up to 15 s for
    /// the store.
    ///
    /// # Errors
    /// The child is invalid or its queue refuses it; an earlier attempt added another child with this call; the run
    /// has lost its job, or the job is being cancelled; or the call to the store fails. In the last case the child may
    /// be stored, and a later attempt finds it.
    #[boxed]
    pub async fn add_child(&self, child: &NewChild) -> Result<JobId, AddChildError> {
        add_child(self.child_adder.as_deref(), child).await
    }

    /// Appends text to the job's log, as its stdout. Never blocks.
    pub fn log(&self, text: &str) {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        stdout.push(text.as_bytes());
        stdout.push(b"\n");
    }

    /// Reports progress: a fraction from 0 to 1, and a text, which may be empty. The latest report is stored. Never
    /// blocks.
    pub fn progress(&self, fraction: f64, message: &str) {
        self.log.progress(fraction, Some(message));
    }
}

/// A function that can run jobs: `Fn(In, Context) -> impl Future<Output = Result<Out, E>>`. `In` is decoded from JSON,
/// `Out` is encoded as JSON, and `E` is an error or text. The compiler infers `Signature`.
pub trait Handler<Signature>: Send + Sync + 'static {
    /// Decodes the payload, calls the function, and encodes its result.
    ///
    /// # Errors
    /// The payload does not fit the argument; the function is not called then.
    fn call(&self, payload: &[u8], context: JobContext) -> Result<Call, Failure>;
}

/// A running call. It returns the result as JSON.
pub type Call = BoxFuture<'static, Result<Vec<u8>, Failure>>;

impl<F, Fut, In, Out, E> Handler<(In, Out, E)> for F
where
    F: Fn(In, JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, E>> + Send + 'static,
    In: DeserializeOwned,
    Out: Serialize,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn call(&self, payload: &[u8], context: JobContext) -> Result<Call, Failure> {
        let run = self(read(payload)?, context);
        Ok(Box::pin(async move {
            let output = run.await.map_err(|error| failure_of(&*error.into()))?;
            encoded(&output)
        }))
    }
}

fn read<In: DeserializeOwned>(payload: &[u8]) -> Result<In, Failure> {
    serde_json::from_slice(payload).map_err(|error| {
        let message = format!("the payload is not what the handler takes: {error}");
        Failure::new(FailureKind::Permanent, message)
    })
}

/// Decodes the payload of a job.
pub(super) fn payload_of<In: DeserializeOwned>(job: &Job) -> Result<In, Failure> {
    read(&job.script)
}

/// Encodes a result.
pub(super) fn encoded(output: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(output).map_err(|error| {
        let message = format!("the result cannot be written as JSON: {error}");
        Failure::new(FailureKind::Permanent, message)
    })
}

/// Creates a runtime from a function. The payload is the job's script as JSON. The result is stored as JSON, so a
/// string has its quotes.
///
/// A payload that does not fit fails permanently, without a retry. An error of the function, with its causes, or its
/// panic is the job's error.
pub fn handler<H: Handler<S>, S: 'static>(handler: H) -> Arc<dyn Runtime> {
    Arc::new(Typed {
        handler,
        signature: PhantomData::<fn(S)>,
    })
}

struct Typed<H, S> {
    handler: H,
    signature: PhantomData<fn(S)>,
}

impl<H, S> fmt::Debug for Typed<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

impl<H: Handler<S>, S: 'static> Runtime for Typed<H, S> {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let (talk, cancelled) = HandlerIo::new(&run);
            let context = talk.context(&run, &cancelled);
            let report = match self.handler.call(&run.job.script, context) {
                Ok(call) => finish(call, &run, cancelled.drop_guard()).await,
                Err(failure) => Report::failed(failure),
            };
            talk.end(report)
        })
    }
}

/// Log output and cancel token shared by a handler and its run.
pub(crate) struct HandlerIo(Arc<Mutex<LogWriter>>);

impl HandlerIo {
    /// Creates the log output of a run, and the token that cancels its handler.
    pub(crate) fn new(run: &Run) -> (Self, CancellationToken) {
        let stdout = Arc::new(Mutex::new(run.log.writer(Stream::Stdout)));
        (Self(stdout), CancellationToken::new())
    }

    pub(crate) fn context(&self, run: &Run, cancelled: &CancellationToken) -> JobContext {
        context(run, &self.0, cancelled)
    }

    /// Adds the end of the output to a report.
    pub(crate) fn end(&self, report: Report) -> Report {
        let mut stdout = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stdout = stdout.finish();
        Report { stdout, ..report }
    }
}

fn context(run: &Run, stdout: &Arc<Mutex<LogWriter>>, cancelled: &CancellationToken) -> JobContext {
    let job = &run.job;
    JobContext {
        job_id: job.id.clone(),
        attempt: job.attempt,
        caller_id: job.caller_id.clone(),
        context_id: job.context_id.clone(),
        input: job.input.as_deref().map(Arc::from),
        stop: cancelled.clone(),
        trace: run.trace.clone(),
        inputs: run.inputs.clone(),
        batch: run.extensions.get::<Batch>().cloned(),
        batch_end: job.callback.is_some().then(|| batch_end(job)).flatten(),
        child_adder: run.child_adder.clone(),
        log: run.log.clone(),
        stdout: Arc::clone(stdout),
    }
}

fn batch_end(job: &Job) -> Option<BatchEnd> {
    BatchEnd::parse(job.input.as_deref()?).ok()
}

/// Runs a call until it has ended or is aborted.
pub(crate) async fn finish(call: Call, run: &Run, cancelled: DropGuard) -> Report {
    // A task of its own limits a panic to the call, and a handler that never yields does not delay timers.
    let task = AbortOnDropHandle::new(tokio::spawn(call.in_current_span()));
    until_over(async { report(task.await) }, run, cancelled).await
}

/// Waits until a call has ended. Drops it when its time is over.
pub(super) async fn until_over(
    ended: impl Future<Output = Report>,
    run: &Run,
    cancelled: DropGuard,
) -> Report {
    tokio::pin!(ended);
    let (failure, grace) = tokio::select! {
        biased;
        report = &mut ended => return report,
        () = tokio::time::sleep_until(run.deadline) => (Failure::timeout(), run.grace),
        reason = run.stop.stopped() => match reason {
            StopReason::Requested => (Failure::stopped(), run.grace),
            StopReason::Lost => (Failure::stopped(), LOST_GRACE.min(run.grace)),
        },
    };
    drop(cancelled);
    let lost = async {
        run.stop.lost().await;
        tokio::time::sleep(LOST_GRACE).await;
    };
    // The result comes too late in any case.
    tokio::select! {
        _ = tokio::time::timeout(grace, ended) => {}
        () = lost => {}
    }
    Report::failed(failure)
}

fn report(ended: Result<Result<Vec<u8>, Failure>, tokio::task::JoinError>) -> Report {
    let failure = match ended {
        Ok(Ok(output)) => return Report::done(output),
        Ok(Err(failure)) => failure,
        Err(error) => {
            let message = match error.try_into_panic() {
                Ok(panic) => format!("the handler panicked: {}", panic_text(&*panic)),
                Err(error) => format!("the handler was cut off: {error}"),
            };
            Failure::new(FailureKind::Script, message)
        }
    };
    Report::failed(failure)
}
