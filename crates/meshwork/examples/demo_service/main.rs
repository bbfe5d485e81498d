//! A service that answers whatever clients of Nooble4 ask of its demo: `cargo run --release --example demo_service --
//! --redis URL --name demo --env development --dialect streams`. It ends with Ctrl-C or SIGTERM, when what it has in hand
//! is answered. The example `demo_client` asks it everything.
#![allow(clippy::print_stdout, reason = "that is its purpose")]

mod handlers;
mod options;

use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // From the first word on, so that who waits for that may end it.
    let mut terminated = signal(SignalKind::terminate())?;
    let options = options::Options::read()?;
    let client = options.client(&options.name).await?;
    let service = handlers::service(&client, &options.url)?.start().await?;
    service.registered().await;
    for queue in service.queues() {
        println!("listening on {queue}");
    }
    tokio::select! {
        heard = tokio::signal::ctrl_c() => heard?,
        _ = terminated.recv() => {}
    }
    service.stop().await;
    Ok(())
}
