//! A job that reports progress, may be stopped and fails once, and a program that follows it.
//! `cargo run -p meshwork --example progress`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::time::Duration;

use meshwork::{Attempt, CancellationToken, Client, Job, JobError, Progress, Target, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = usize, retries = 1, backoff = "100ms")]
struct Import {
    files: Vec<String>,
}

async fn import(
    job: Import,
    Attempt(attempt): Attempt,
    progress: Progress,
    stop: CancellationToken,
) -> Result<usize, JobError> {
    for (at, file) in job.files.iter().enumerate() {
        if stop.is_cancelled() {
            return Err(JobError::retry("stopped"));
        }
        progress.set(at as f64 / job.files.len() as f64, file);
    }
    match attempt {
        1 => Err(JobError::retry("the first attempt fails")),
        _ => Ok(job.files.len()),
    }
}

#[tokio::main]
async fn main() -> Result<(), meshwork::Error> {
    let client = Client::connect(&Target::Directory("target/progress".into())).await?;
    let worker = Worker::new(&client).job(import).start().await?;
    let files = ["a.csv", "b.csv"].map(str::to_owned).to_vec();
    let job = client.enqueue(Import { files }).await?;
    println!(
        "{} files",
        job.result_within(Duration::from_secs(60)).await?
    );
    let record = job.record().await?;
    println!(
        "attempt {}, {} failed before",
        record.attempt,
        record.failed_attempts.len()
    );
    worker.stop().await;
    Ok(())
}
