//! Reads before a run: the results of a job's prerequisites, and its sandbox.

use std::time::Duration;

use meshwork_broker::{Backoff, Broker, Error};
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::sandbox::Effective;
use tokio::time::Instant;

use super::run_sandbox::{NoSandbox, RunSandbox};
use meshwork_runtime::Inputs;

/// Returns the results of a job's prerequisites.
pub(super) async fn inputs(broker: &Broker, job: &Job) -> Result<Inputs, Failure> {
    if job.depends_on.is_empty() && job.callback.is_none() {
        return Ok(Inputs::default());
    }
    let read = repeated(broker, job, "inputs", || broker.inputs(job));
    match read.await {
        Ok(inputs) => Ok(Inputs::new(job, inputs)),
        Err(error) => {
            let message = format!("the results of its prerequisites cannot be read: {error}");
            Err(Failure::new(FailureKind::Script, message))
        }
    }
}

/// Returns the sandbox of a run's processes.
pub(super) async fn sandbox(
    broker: &Broker,
    job: &Job,
    sandbox: &RunSandbox,
) -> Result<Effective, Failure> {
    let found = repeated(broker, job, "settings", || async {
        match sandbox.effective().await {
            Err(NoSandbox::Broker(error)) => Err(error),
            found => Ok(found),
        }
    });
    let found = found.await.map_err(NoSandbox::from);
    found.flatten().map_err(NoSandbox::into_failure)
}

/// Time for which a call is repeated that a key of another type fails: a worker moves it away within two seconds, if that
/// may be done.
const MOVED_WITHIN: Duration = Duration::from_secs(5);

/// Returns the answer of a call that a run needs. While the server is unreachable, the call is repeated for as long as a
/// run of the job may take.
pub(super) async fn repeated<T, F>(
    broker: &Broker,
    job: &Job,
    verb: &'static str,
    call: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let (until, mut backoff) = (
        Instant::now() + Duration::from_secs(job.timeout),
        Backoff::new(),
    );
    let moved = until.min(Instant::now() + MOVED_WITHIN);
    loop {
        match call().await {
            Ok(answer) => {
                broker.outages().succeeded(verb);
                return Ok(answer);
            }
            Err(error)
                if error.is_repeated() && Instant::now() < until
                    || error.is_wrong_type() && Instant::now() < moved =>
            {
                broker.outages().failed(verb, &error);
                backoff.wait().await;
            }
            Err(error) => return Err(error),
        }
    }
}
