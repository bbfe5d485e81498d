//! One run of a handler, without a store.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::job::{Job as Record, NewJob, field};
use meshwork_model::outcome::FailureKind;
use meshwork_model::time;
use tokio::time::Instant;

use crate::client::Enqueueable;
use crate::handler::{ITEM, JobHandler, Route, RouteError, States};
use crate::{Error, Job};
use meshwork_runtime::Run;

/// Runs a handler once, as a worker does: the payload is written and read as JSON, a panic is a failure, and the job's
/// timeout and the limits of a job and of its result hold. After the timeout the handler has 5 s to end, as by a worker's
/// default. There is no store; [`JobContext::add_child`](crate::JobContext::add_child) fails.
///
/// ```
/// use meshwork::testing::perform;
/// use meshwork::{Job, State};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(output = u64)]
/// struct Convert { cents: u64 }
///
/// async fn convert(job: Convert, State(rate): State<u64>) -> Result<u64, String> {
///     Ok(job.cents * rate)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let result = perform(convert, Convert { cents: 7 }).state(2_u64).await;
/// assert_eq!(result, Ok(14));
/// # });
/// ```
pub fn perform<J: Job, Args: 'static, H: JobHandler<J, Args>>(handler: H, job: J) -> Perform<J> {
    Perform {
        route: Route::new::<J, Args, H>(handler),
        job: new_job(job).map_err(|error| error.to_string()),
        states: States::default(),
        attempt: 1,
        input: None,
        of: PhantomData,
    }
}

/// A run of a handler: choose what it finds, and await it.
///
/// [`perform`] has an example.
#[must_use = "the handler runs when this is awaited"]
pub struct Perform<J> {
    route: Route,
    job: Result<NewJob, String>,
    states: States,
    attempt: u32,
    input: Option<Result<String, String>>,
    of: PhantomData<fn() -> J>,
}

/// Failure of a run.
///
/// ```
/// use meshwork::JobError;
/// use meshwork::testing::perform;
///
/// #[meshwork::job]
/// struct Charge;
///
/// async fn charge(_: Charge) -> Result<(), JobError> {
///     Err(JobError::permanent("there is no card"))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let failure = perform(charge, Charge).await.unwrap_err();
/// assert_eq!(failure.message, "there is no card");
/// assert_eq!(failure.kind, meshwork::FailureKind::Permanent);
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct JobFailure {
    /// Kind of the failure, which decides whether the job is retried.
    pub kind: FailureKind,
    /// Error of the job.
    pub message: String,
    /// Pause before the next run that the handler chose.
    pub after: Option<Duration>,
}

impl<J: Job> Perform<J> {
    /// Adds a value that the handler takes as [`State<T>`](crate::State).
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Sets the number of the attempt. Default: 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the [input](crate::Input) of the job.
    pub fn input(mut self, input: &J::Input) -> Self {
        let input = serde_json::to_string(input).map_err(|error| error.to_string());
        self.input = Some(input.map(|it| format!("{{\"{ITEM}\":{it}}}")));
        self
    }

    async fn run(self) -> Result<J::Output, JobFailure> {
        let permanent = |message: String| JobFailure {
            kind: FailureKind::Permanent,
            message,
            after: None,
        };
        let new = self.job.map_err(permanent)?;
        let input = self.input.transpose().map_err(permanent)?;
        let built = self.route.build(&[], &self.states);
        let (_, runtime) = built.map_err(|error| match error {
            RouteError::Name(error) => permanent(error.to_string()),
            RouteError::Missing(what) => permanent(what),
        })?;
        let job = record(J::NAME, &new.script, input.as_deref(), self.attempt);
        let deadline = Instant::now() + Duration::from_secs(new.timeout);
        let run = Run::new(Arc::new(job), deadline);
        let report = meshwork_worker::bounded(&*runtime, run).await.bounded();
        let output = report.result.map_err(|failure| JobFailure {
            kind: failure.kind,
            message: failure.message,
            after: failure.after,
        })?;
        serde_json::from_slice(&output).map_err(|error| permanent(error.to_string()))
    }
}

/// Returns the job as a client enqueues it.
fn new_job<J: Job>(job: J) -> Result<NewJob, Error> {
    Ok(job.into_request()?.build()?)
}

/// Returns the record of a job that runs.
fn record(name: &str, payload: &str, input: Option<&str>, attempt: u32) -> Record {
    let now = time::iso(crate::host_ms());
    let attempt = attempt.to_string();
    let fields = [
        (field::STATUS, "started"),
        (field::SCRIPT_TYPE, name),
        (field::SCRIPT, payload),
        (field::ATTEMPT, &attempt),
        (field::CREATED_AT, &now),
        (field::UPDATED_AT, &now),
    ];
    let input = input.map(|input| (field::INPUT, input));
    let fields = fields.into_iter().chain(input);
    let fields = fields.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    Record::from_fields("test", fields)
}

impl<J: Job> IntoFuture for Perform<J> {
    type Output = Result<J::Output, JobFailure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
