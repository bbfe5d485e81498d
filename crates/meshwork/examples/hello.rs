//! A worker that greets, and a client that asks it to. `cargo run -p meshwork --example hello`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use meshwork::{Client, Target, Worker, runtime::JobContext};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&Target::Directory("target/hello".into())).await?;
    let greet = async |name: String, _: JobContext| Ok::<_, String>(format!("Hello, {name}!"));
    let worker = Worker::new(&client).handle("greet", greet).start().await?;
    let greeting: String = client.call("greet", "world").await?;
    println!("{greeting}");
    worker.stop().await;
    Ok(())
}
