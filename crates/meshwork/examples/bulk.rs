//! Many typed jobs in one call, twice, as a batch with a callback. `cargo run -p meshwork --example bulk`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::time::Duration;

use meshwork::{Client, Job, Target, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = u64, unique = "square-{of}")]
struct Square {
    of: u64,
}

#[derive(Serialize, Deserialize, Job)]
struct Done;

async fn square(job: Square) -> Result<u64, String> {
    job.of
        .checked_mul(job.of)
        .ok_or_else(|| format!("{} is too large", job.of))
}

async fn done(_: Done) -> Result<(), String> {
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&Target::Directory("target/bulk".into())).await?;
    let squares = || (1..=1000).map(|of| Square { of });
    let first = client.enqueue_all(squares()).await?;
    let again = client.enqueue_all(squares()).await?;
    let new = |answers: &[Result<meshwork::JobHandle<Square>, _>]| {
        answers.iter().flatten().filter(|job| job.is_new()).count()
    };
    println!("{} new, then {}", new(&first), new(&again));
    let batch = client.batch().on_success(Done).open().await?;
    batch.add((2001..=2010).map(|of| Square { of })).await?;
    batch.seal().await?;
    let worker = Worker::new(&client)
        .job(square)
        .job(done)
        .concurrency(50)
        .start()
        .await?;
    let status = batch.wait(Duration::from_secs(60), |_| {}).await?;
    let last = first.into_iter().last().ok_or("there is none")??;
    println!("{:?}, 1000² = {}", status.state, last.result().await?);
    worker.stop().await;
    Ok(())
}
