//! Handlers of typed jobs: async functions whose first argument is the job, and whose other arguments are taken from its
//! run.
//!
//! ```
//! use meshwork::{Attempt, Job, JobContext, JobError, State};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(output = u64)]
//! struct Pay { order: u64 }
//!
//! #[derive(Clone)]
//! struct Bank { url: String }
//!
//! async fn pay(job: Pay, State(bank): State<Bank>, Attempt(attempt): Attempt) -> Result<u64, JobError> {
//!     match attempt {
//!         1 => Err(JobError::retry(format!("{} is busy", bank.url))),
//!         _ => Ok(job.order),
//!     }
//! }
//! ```

mod call;
#[doc(hidden)]
pub mod check;
mod from_job;
pub(crate) mod function;
pub(crate) mod group;
mod service;
mod states;

use std::error::Error;

use futures_util::future::BoxFuture;

pub(crate) use call::ITEM;
pub use call::{BoxError, JobCall, JobOutput, JobService};
pub use from_job::{Attempt, FromJob, Input, Progress, State};
pub(crate) use service::{Layered, Route, RouteError};
pub use states::States;

use crate::Job;
use meshwork_runtime::JobError;

/// A function that runs jobs of the type `J`: `async fn(J, …) -> Result<J::Output, E>`. Its other arguments, at most
/// eight, implement [`FromJob`]: [`JobContext`](crate::JobContext), [`State`], [`Input`], [`Inputs`](crate::Inputs),
/// [`Attempt`], [`Progress`] and [`CancellationToken`](crate::CancellationToken). `E` is an error or a text. The compiler infers `Args`.
///
/// A payload that does not fit the type fails permanently, without a retry. An error, with its causes, or a panic is the
/// job's error; a [`JobError`] decides about retries.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler of jobs",
    label = "no `async fn(job, …) -> Result<output, error>`",
    note = "the first argument is the job, a type with `#[derive(Job)]`; the others are `JobContext`, `State<T>`, `Input<J>`, `Inputs`, `Attempt`, `Progress` or `CancellationToken`",
    note = "the function returns `Result<J::Output, E>` with the output of the job's type, and its future is `Send`",
    note = "write `#[meshwork::handler]` above the function: the compiler then names the fault"
)]
pub trait JobHandler<J: Job, Args>: Send + Sync + 'static {
    /// Checks that the worker has all that the arguments need.
    ///
    /// # Errors
    /// The text names what is missing.
    fn check(states: &States) -> Result<(), String>;

    /// Calls the function.
    fn run(&self, job: J, call: &JobCall) -> BoxFuture<'static, Result<J::Output, BoxError>>;
}

macro_rules! handler {
    ($($arg:ident)*) => {
        #[allow(non_snake_case, unused_variables, clippy::allow_attributes, reason = "there is one for no arguments, too")]
        impl<F, Fut, J, E, $($arg,)*> JobHandler<J, (E, $($arg,)*)> for F
        where
            F: Fn(J, $($arg,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<J::Output, E>> + Send + 'static,
            J: Job,
            E: Into<BoxError>,
            $($arg: FromJob,)*
        {
            fn check(states: &States) -> Result<(), String> {
                $($arg::check(states)?;)*
                Ok(())
            }

            fn run(&self, job: J, call: &JobCall) -> BoxFuture<'static, Result<J::Output, BoxError>> {
                $(
                    let $arg = match $arg::from_job(call) {
                        Ok($arg) => $arg,
                        Err(error) => return refused(error),
                    };
                )*
                let run = self(job, $($arg,)*);
                Box::pin(async move { run.await.map_err(Into::into) })
            }
        }
    };
}

handler!();
handler!(A);
handler!(A B);
handler!(A B C);
handler!(A B C D);
handler!(A B C D G);
handler!(A B C D G H);
handler!(A B C D G H I);
handler!(A B C D G H I K);

/// The run of a function that is not called, since an argument is missing.
fn refused<T: Send + 'static>(error: JobError) -> BoxFuture<'static, Result<T, BoxError>> {
    let error: Box<dyn Error + Send + Sync> = error.into();
    Box::pin(std::future::ready(Err(error)))
}
