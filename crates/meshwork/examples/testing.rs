//! Tests of a program's jobs, without a server and without waits. `cargo run -p meshwork --example testing`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::time::Duration;

use meshwork::testing::{Clock, assert_enqueued, drain, perform, refute_enqueued};
use meshwork::{Attempt, Client, Job, JobError, Worker};
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Serialize, Deserialize, Job)]
#[job(output = String, retries = 1, backoff = "1h")]
struct Welcome {
    user: u64,
}

async fn welcome(job: Welcome, Attempt(attempt): Attempt) -> Result<String, JobError> {
    match attempt {
        1 => Err(JobError::retry("the mail server is busy")),
        _ => Ok(format!("mail to {}", job.user)),
    }
}

/// The function of the program that is tested.
async fn sign_up(client: &Client, user: u64) -> Result<(), meshwork::Error> {
    client.enqueue(Welcome { user }).delay(DAY).await?;
    Ok(())
}

async fn a_handler_alone() {
    let early = perform(welcome, Welcome { user: 7 }).await;
    assert!(early.is_err());
    let mail = perform(welcome, Welcome { user: 7 }).attempt(2).await;
    assert_eq!(mail.as_deref(), Ok("mail to 7"));
}

async fn enqueued_jobs() -> Result<(), meshwork::Error> {
    let client = Client::in_memory();
    sign_up(&client, 7).await?;
    assert_enqueued::<Welcome>(&client, |job| job.user == 7).await;
    refute_enqueued::<Welcome>(&client, |job| job.user == 8).await;
    Ok(())
}

async fn time() -> Result<(), meshwork::Error> {
    let clock = Clock::new();
    let client = clock.client();
    let worker = Worker::new(&client).job(welcome);
    sign_up(&client, 7).await?;
    for finished in [0, 0, 1] {
        let done = drain(&client, worker.clone()).await?;
        assert_eq!(done.finished, finished);
        clock.advance(DAY);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), meshwork::Error> {
    a_handler_alone().await;
    enqueued_jobs().await?;
    time().await?;
    println!("all hold");
    Ok(())
}
