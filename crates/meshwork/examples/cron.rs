//! A schedule of a typed job, and the worker that fires it. `cargo run -p meshwork --example cron`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::time::Duration;

use meshwork::{Client, Job, NewSchedule, State, Target, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize, Job)]
struct Report {
    title: String,
}

async fn report(job: Report, State(printed): State<mpsc::Sender<String>>) -> Result<(), String> {
    printed
        .send(job.title)
        .await
        .map_err(|error| error.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&Target::Directory("target/cron".into())).await?;
    let title = "sales".to_owned();
    // `NewSchedule::cron("30 2 * * MON-FRI", …)?.zone("Europe/Brussels")?` runs on work days at half past two.
    let often = NewSchedule::every(Duration::from_secs(1), Report { title })?;
    client.schedule("report")?.add(often).await?;
    let (sender, mut printed) = mpsc::channel::<String>(8);
    let worker = Worker::new(&client)
        .job(report)
        .state(sender)
        .start()
        .await?;
    for _ in 0..2 {
        println!("{}", printed.recv().await.unwrap_or_default());
    }
    client.schedule("report")?.remove().await?;
    worker.stop().await;
    Ok(())
}
