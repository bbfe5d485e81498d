//! Jobs in the form that a worker passes to runners, and checks of reports.

use std::sync::Arc;
use std::time::Duration;

use meshwork::runtime::{Run, Runtime, StopSignal, builtin};
use meshwork_model::job::Job;
use meshwork_model::outcome::{Failure, Report};
use tokio::time::{Instant, timeout};

/// Longer than anything takes that is not stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The limit of runs that end for another reason: more than any test waits.
pub(crate) const ENDLESS: Duration = Duration::from_secs(3600);

/// A record with these fields.
pub(crate) fn job(fields: &[(&str, &[u8])]) -> Job {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_vec()));
    Job::from_fields("job-1", fields)
}

/// A job that is only a script.
pub(crate) fn script(script: &str) -> Job {
    job(&[("script", script.as_bytes())])
}

/// The grace of runs that ignore it.
pub(crate) const SHORT_GRACE: Duration = Duration::from_millis(100);

/// A run of `job` that ends after `limit`, and what stops it.
pub(crate) fn run_of(job: Job, limit: Duration) -> (Run, StopSignal) {
    let mut run = Run::new(Arc::new(job), Instant::now() + limit);
    run.grace = SHORT_GRACE;
    let stop = run.stop.clone();
    (run, stop)
}

/// Runs `job` with the runtime for `script_type`.
pub(crate) async fn run(script_type: &str, job: Job) -> Report {
    let runner = builtin(script_type).expect("a runtime that comes with Meshwork");
    run_with(&*runner, job, PATIENCE).await
}

/// Runs `job` for at most `limit`.
pub(crate) async fn run_with(runner: &dyn Runtime, job: Job, limit: Duration) -> Report {
    let (run, _stop) = run_of(job, limit);
    within(runner.run(run)).await
}

/// A limit that a short script reaches its end well before, however busy the machine is.
pub(crate) async fn enough_for_a_short_script() -> Duration {
    let began = Instant::now();
    run("python", script("pass")).await;
    began.elapsed() * 10 + Duration::from_secs(1)
}

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it takes too long")
}

/// The result as text.
#[track_caller]
pub(crate) fn output(report: &Report) -> &str {
    match &report.result {
        Ok(output) => std::str::from_utf8(output).expect("the result is text"),
        Err(failure) => panic!(
            "{failure:?}, stderr: {}",
            String::from_utf8_lossy(&report.stderr)
        ),
    }
}

/// Why there is no result.
#[track_caller]
pub(crate) fn failure(report: &Report) -> &Failure {
    report.result.as_ref().expect_err("it should have failed")
}
