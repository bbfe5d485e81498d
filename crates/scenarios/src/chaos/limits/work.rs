//! One worker of the scenario: the real one, with a runner that records the beginning and the end of each run.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork::runtime::{Run, Runtime};
use meshwork::{Client, Worker};
use meshwork_model::outcome::{Failure, FailureKind, Report};

use super::jobs::Sort;
use super::{LEASE, monotonic_ns};

/// Number of jobs at a time in each worker: more in total than the limits allow.
const CONCURRENCY: usize = 8;

struct WriteDown {
    tally: File,
}

impl WriteDown {
    /// Appends a line in one write, so that lines of several processes stay whole.
    fn add(&self, word: &str, job: &str) -> std::io::Result<()> {
        let (pid, now) = (std::process::id(), monotonic_ns());
        (&self.tally).write_all(format!("{word} {job} {pid} {now}\n").as_bytes())
    }
}

impl Runtime for WriteDown {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let failed = |why: String| Report::failed(Failure::new(FailureKind::Permanent, why));
            let script = String::from_utf8_lossy(&run.job.script).into_owned();
            let Ok(ms) = script.parse() else {
                return failed(format!("{script:?} is no number of milliseconds"));
            };
            let job = &run.job.id;
            if let Err(error) = self.add("start", job) {
                return failed(error.to_string());
            }
            // The run ends after its time, or when it loses its lease: then no end is recorded.
            let stopped = tokio::time::timeout(Duration::from_millis(ms), run.stop.stopped()).await;
            if let Ok(reason) = stopped {
                return failed(format!("stopped: {reason:?}"));
            }
            match self.add("end", job) {
                Ok(()) => Report::done(job.as_bytes()),
                Err(error) => failed(error.to_string()),
            }
        })
    }
}

/// Works for ever.
///
/// # Errors
/// An argument is missing or wrong, or the server cannot be reached.
pub async fn be_worker(arguments: &[String]) -> Result<(), String> {
    let [url, tally] = arguments else {
        return Err("a worker needs a URL and a file".to_owned());
    };
    let file = OpenOptions::new().append(true).create(true).open(tally);
    let tally = file.map_err(|error| format!("{tally}: {error}"))?;
    let runner = Arc::new(WriteDown { tally });
    let said = |error: meshwork::Error| error.to_string();
    let client = Client::open(url).await.map_err(said)?;
    let mut worker = Worker::new(&client).concurrency(CONCURRENCY).lease(LEASE);
    for sort in Sort::ALL {
        worker = worker.runtime(sort.script_type()?, Arc::clone(&runner) as _);
    }
    let _working = worker.start().await.map_err(said)?;
    std::future::pending().await
}
