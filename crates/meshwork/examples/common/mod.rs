//! Shared code of the action examples: options, the server's URL, and shutdown by signal.

use std::error::Error;
use std::time::Duration;

use meshwork::protocol::nooble::{Client, Dialect, Namespace, NoobleKeys, Service};
use meshwork::{Target, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};

/// The value of an option, or what it is without.
pub(crate) fn option(name: &str, default: &str) -> String {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).unwrap_or_else(|| default.to_owned())
}

/// URL of Redis.
pub(crate) fn redis() -> String {
    option("--redis", "redis://127.0.0.1")
}

/// The service of this name as a client, where `--redis`, `--env` (`ENVIRONMENT`) and `--dialect` say.
pub(crate) async fn client(service: &str) -> Result<Client, Box<dyn Error>> {
    let environment = std::env::var("ENVIRONMENT").unwrap_or_else(|_| "development".to_owned());
    let environment = option("--env", &environment);
    let dialect: Dialect = option("--dialect", "streams").parse()?;
    let names = NoobleKeys::new(Namespace::nooble(), Some(&environment), dialect);
    let target = Target::parse(&redis(), TlsFiles::default())?;
    Ok(Client::connect(&target, names, service).await?)
}

/// Serves until Ctrl-C or SIGTERM. `--lease SECONDS` says how soon another process takes over from one that was killed.
#[allow(clippy::print_stdout, reason = "so one sees where it listens")]
pub(crate) async fn serve(service: Service) -> Result<(), Box<dyn Error>> {
    // From the first word on, so that who waits for that may end it.
    let mut terminated = signal(SignalKind::terminate())?;
    let lease = Duration::from_secs(option("--lease", "10").parse()?);
    let service = service.lease(lease).start().await?;
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
