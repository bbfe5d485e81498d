//! A service that answers whatever clients of Nooble4 ask of its demo: `cargo run --release --example demo_service --
//! --redis URL --name demo --env development --dialect streams`. It ends with Ctrl-C or SIGTERM, when what it has in hand
//! is answered. The example `demo_client` asks it everything.

#[path = "../common/mod.rs"]
mod common;
mod handlers;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = common::client(&common::option("--name", "demo")).await?;
    common::serve(handlers::service(&client, &common::redis())?).await
}
