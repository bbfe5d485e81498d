//! A worker that greets, and a client that calls it. `cargo run -p meshwork --example hello`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use meshwork::{Client, Job, Target, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = String)]
struct Greet {
    name: String,
}

async fn greet(job: Greet) -> Result<String, String> {
    Ok(format!("Hello, {}!", job.name))
}

#[tokio::main]
async fn main() -> Result<(), meshwork::Error> {
    let client = Client::connect(&Target::Directory("target/hello".into())).await?;
    let worker = Worker::new(&client).job(greet).start().await?;
    let name = "world".to_owned();
    println!("{}", client.call(Greet { name }).await?);
    worker.stop().await;
    Ok(())
}
