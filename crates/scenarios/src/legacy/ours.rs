//! A Meshwork worker as a process: the real one, with a runner that records a start instead of starting an
//! interpreter, so that thousands of jobs take seconds. It has the name of the old workers, so that it gets their
//! jobs and takes over their lists.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork::runtime::{Run, Runtime};
use meshwork::{Client, Worker};
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::signal::unix::{SignalKind, signal};

use super::orders::{Account, Orders};
use super::{LegacyError, TYPE};

struct WriteDown {
    dir: PathBuf,
    name: String,
}

impl Runtime for WriteDown {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let id = &run.job.id;
            match Account::Starts.add(&self.dir, &format!("{id} {}", self.name)) {
                Ok(()) => Report::done(id.as_bytes()),
                Err(error) => Report::failed(Failure::new(FailureKind::Script, error.to_string())),
            }
        })
    }
}

/// Works until SIGTERM.
///
/// # Errors
/// The server cannot be reached, or the system provides no signals.
pub async fn work(orders: &Orders) -> Result<(), LegacyError> {
    let mut term = signal(SignalKind::terminate()).map_err(LegacyError::io("signals"))?;
    let client = Client::open(&orders.url).await?;
    let runner = WriteDown {
        dir: orders.dir.clone(),
        name: orders.name.clone(),
    };
    let worker = Worker::new(&client)
        .runtime(TYPE.parse()?, Arc::new(runner))
        .instance(orders.worker_id.parse()?)
        .legacy_ids([orders.worker_id.parse()?])
        .concurrency(2)
        .start()
        .await?;
    term.recv().await;
    worker.stop().await;
    Ok(())
}
