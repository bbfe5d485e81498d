//! A worker with shared state that runs until Ctrl-C or SIGTERM. `cargo run -p meshwork --example worker`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use meshwork::{Client, Job, JobError, State, Worker, shutdown_signal};
use serde::{Deserialize, Serialize};

/// A pool of connections, in a program of yours. Each run gets a clone.
#[derive(Clone, Default)]
struct Database(Arc<AtomicU64>);

#[derive(Serialize, Deserialize, Job)]
#[job(retries = 3, backoff = "1s", timeout = "1min")]
struct Import {
    file: String,
    rows: u64,
}

async fn import(job: Import, State(database): State<Database>) -> Result<(), JobError> {
    if job.rows == 0 {
        return Err(JobError::permanent(format!("{} is empty", job.file)));
    }
    let rows = database.0.fetch_add(job.rows, Ordering::SeqCst) + job.rows;
    println!("{}: {rows} rows in all", job.file);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), meshwork::Error> {
    let folder = "target/worker";
    let client = Client::builder().directory(folder).connect().await?;
    let file = "sales.csv".to_owned();
    client.enqueue(Import { file, rows: 3 }).await?;
    let worker = Worker::new(&client)
        .job(import)
        .state(Database::default())
        .concurrency(8)
        .shutdown_timeout(Duration::from_secs(10));
    // Claims nothing more after the signal, waits 10 s for running jobs, and releases the rest.
    worker.run_until(shutdown_signal()).await?;
    println!("stopped");
    Ok(())
}
