//! A service that answers whatever clients of Nooble4 ask of its demo: `cargo run --release --example demo_service --
//! --redis URL --name demo --env development --dialect streams`. It shuts down on Ctrl-C or SIGTERM, after answering
//! the actions in flight. The example `demo_client` calls each of its actions.

#[path = "../common/mod.rs"]
mod common;
mod handlers;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = common::client(&common::option("--name", "demo")).await?;
    common::serve(handlers::service(&client, &common::redis())?).await
}
