//! Arguments of handlers that are taken from the run of a job.

use std::any::type_name;
use std::fmt;

use tokio_util::sync::CancellationToken;

use super::{JobCall, States};
use crate::Job;
use crate::handler::function::JobContext;
use meshwork_runtime::{Inputs, JobError};

/// A type that can be an argument of a handler, after the job.
///
/// ```
/// use meshwork::JobError;
/// use meshwork::handler::{FromJob, JobCall};
///
/// /// Size of the payload, in bytes.
/// struct PayloadSize(usize);
///
/// impl FromJob for PayloadSize {
///     fn from_job(call: &JobCall) -> Result<Self, JobError> {
///         Ok(Self(call.payload().len()))
///     }
/// }
///
/// #[meshwork::job]
/// struct Import { rows: Vec<u64> }
///
/// async fn import(job: Import, PayloadSize(bytes): PayloadSize) -> Result<(), String> {
///     println!("{} rows in {bytes} bytes", job.rows.len());
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument of a handler",
    label = "cannot be taken from the run of a job",
    note = "the arguments after the job are `JobContext`, `State<T>`, `Input<J>`, `Inputs`, `Attempt`, `Progress` or `CancellationToken`",
    note = "`State<{Self}>` takes a value that `Worker::state` shares"
)]
pub trait FromJob: Sized + Send + 'static {
    /// Checks, when the worker starts, that the argument can be taken from each run.
    ///
    /// # Errors
    /// The text names what is missing.
    fn check(states: &States) -> Result<(), String> {
        let _ = states;
        Ok(())
    }

    /// Takes the argument.
    ///
    /// # Errors
    /// The error ends the run; the handler is not called.
    fn from_job(call: &JobCall) -> Result<Self, JobError>;
}

impl FromJob for JobContext {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        Ok(call.context.clone())
    }
}

impl FromJob for Inputs {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        Ok(call.context.inputs.clone())
    }
}

/// Input of a job of the type `J`: the output of the job before it in a [flow](crate::flow::Chain), or of its first
/// prerequisite ([`Enqueue::after`](crate::Enqueue::after)). An input that is missing or does not fit fails the job
/// permanently.
///
/// ```
/// use meshwork::Input;
///
/// #[meshwork::job(input = Vec<u64>, output = u64)]
/// struct Sum;
///
/// async fn sum(_: Sum, Input(numbers): Input<Sum>) -> Result<u64, String> {
///     Ok(numbers.iter().sum())
/// }
/// ```
pub struct Input<J: Job>(pub J::Input);

impl<J: Job<Input: fmt::Debug>> fmt::Debug for Input<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Input").field(&self.0).finish()
    }
}

impl<J: Job> FromJob for Input<J> {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        let (name, of) = (call.name(), J::NAME);
        if name != of {
            let message = format!("the handler of `{name}` takes the input of `{of}`");
            return Err(JobError::permanent(message));
        }
        call.input::<J>().map(Self)
    }
}

/// Cancelled at the deadline, when a cancel is requested, and when the lease is lost.
impl FromJob for CancellationToken {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        Ok(call.context.stop.clone())
    }
}

/// A value that all handlers of a worker share ([`Worker::state`](crate::Worker::state)), such as a pool of connections.
/// Each run gets a clone. A worker whose handler needs a value that is missing does not start.
///
/// As an argument: [`handler`](mod@crate::handler).
#[derive(Debug, Clone, Copy)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> State<T> {
    fn missing() -> String {
        format!(
            "no state of the type {}: add it with `.state(…)`",
            type_name::<T>()
        )
    }
}

impl<T: Clone + Send + Sync + 'static> FromJob for State<T> {
    fn check(states: &States) -> Result<(), String> {
        states.get::<T>().map(drop).ok_or_else(Self::missing)
    }

    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        let state = call.states.get().map(Self);
        state.ok_or_else(|| JobError::permanent(Self::missing()))
    }
}

/// Number of the attempt, from 1.
///
/// As an argument: [`handler`](mod@crate::handler).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt(pub u32);

impl FromJob for Attempt {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        Ok(Self(call.context.attempt))
    }
}

/// Reports progress of the run.
///
/// ```
/// use meshwork::Progress;
///
/// #[meshwork::job]
/// struct Copy { pages: u32 }
///
/// async fn copy(job: Copy, progress: Progress) -> Result<(), String> {
///     for page in 1..=job.pages {
///         progress.set(f64::from(page) / f64::from(job.pages), &format!("page {page}"));
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Progress(JobContext);

impl Progress {
    /// Reports a fraction from 0 to 1, and a text, which may be empty. The latest report is stored. Never blocks.
    pub fn set(&self, fraction: f64, message: &str) {
        self.0.progress(fraction, message);
    }
}

impl FromJob for Progress {
    fn from_job(call: &JobCall) -> Result<Self, JobError> {
        Ok(Self(call.context.clone()))
    }
}
