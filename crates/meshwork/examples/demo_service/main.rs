//! A service that answers whatever clients of Nooble4 ask of its demo: `cargo run --release --example demo_service --
//! --redis URL --name demo --env development --dialect streams`. It ends with Ctrl-C.
#![allow(clippy::print_stdout, reason = "that is its purpose")]

mod handlers;

use meshwork::model::keys::nooble::{Dialect, QueueManager};
use meshwork::model::name::Namespace;
use meshwork::source::nooble::Client;
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;

/// The value of an option, or what it is without.
fn option(name: &str, default: &str) -> String {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).unwrap_or_else(|| default.to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = option("--redis", "redis://127.0.0.1");
    let environment = std::env::var("ENVIRONMENT").unwrap_or_else(|_| "development".to_owned());
    let environment = option("--env", &environment);
    let dialect: Dialect = option("--dialect", "streams").parse()?;
    let names = QueueManager::new(Namespace::nooble(), Some(&environment), dialect);
    let target = Target::parse(&url, TlsFiles::default())?;
    let broker = Nooble::connect(&target, names).await?;
    let client = Client::new(broker, &option("--name", "demo"));
    let service = handlers::service(&client, &url)?.start().await?;
    service.registered().await;
    for queue in service.queues() {
        println!("listening on {queue}");
    }
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        heard = tokio::signal::ctrl_c() => heard?,
        _ = terminated.recv() => {}
    }
    service.stop().await;
    Ok(())
}
