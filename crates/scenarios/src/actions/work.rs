//! One worker process: the real service, whose handlers record each start.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Client, Service};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use tokio::signal::unix::{SignalKind, signal};

use super::ActionsError;
use super::call::{Call, PATIENCE, inner, other};
use meshwork_test_servers::account;

/// Actions that each worker runs at once. All workers of a service have fewer slots than it has calls.
const SLOTS: usize = 32;
/// Lease that a busy machine can renew in time.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// Line that a worker prints when it takes actions.
pub(super) const READY: &str = "ready";
/// Line that a worker prints, with the call, when a handler blocks until it is killed.
pub(super) const HELD: &str = "held";

/// Arguments of a worker process.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// URL of the server.
    #[arg(long)]
    pub(super) url: String,
    /// Directory of the records.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// Name of the service.
    #[arg(long)]
    pub(super) service: String,
    /// Name of this worker in the records.
    #[arg(long)]
    pub(super) name: String,
    /// Dialect of the wire format.
    #[arg(long)]
    pub(super) dialect: Dialect,
}

/// Returns the file of the starts: a line with the call and the worker for each.
pub(super) fn starts(dir: &Path) -> PathBuf {
    dir.join("starts")
}

/// Connects a client of a service.
pub(super) async fn client(
    url: &str,
    dialect: Dialect,
    service: &str,
) -> Result<Client, ActionsError> {
    let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
    let target = Target::parse(url, TlsFiles::default());
    let target = target.map_err(meshwork::protocol::nooble::Error::from)?;
    let broker = Nooble::connect(&target, names).await;
    let broker = broker.map_err(meshwork::protocol::nooble::Error::from)?;
    Ok(Client::new(broker, service))
}

/// Serves until SIGTERM.
///
/// # Errors
/// The server cannot be reached, or the system provides no signals.
#[allow(
    clippy::print_stdout,
    reason = "the parent process waits for this line"
)]
pub async fn work(orders: &Orders) -> Result<(), ActionsError> {
    let mut term = signal(SignalKind::terminate()).map_err(ActionsError::io("signals"))?;
    let client = client(&orders.url, orders.dialect, &orders.service).await?;
    let of = |verb: &str| format!("{}.{verb}", orders.service);
    let (runs, relays, holds) = (orders.clone(), orders.clone(), orders.clone());
    let run = move |call: Call, _: ActionContext| {
        let noted = note(&runs, &call);
        async move { noted.map(|()| call) }
    };
    let relay = move |call: Call, context: ActionContext| {
        let (noted, next) = (note(&relays, &call), other(&relays.service));
        async move {
            noted?;
            let asks = inner(&call);
            let request = context.request(&format!("{next}.run"), &asks)?;
            let answer: Call = context.client().ask(request, PATIENCE).await?;
            match answer == asks {
                true => Ok::<_, Box<dyn std::error::Error + Send + Sync>>(call),
                false => Err(format!("{asks:?} was answered with {answer:?}").into()),
            }
        }
    };
    let hold = move |call: Call, _: ActionContext| {
        let first = note(&holds, &call).and_then(|()| is_first(&holds.dir, &call));
        async move {
            if first? {
                println!("{HELD} {}", call.call);
                std::future::pending::<()>().await;
            }
            Ok::<_, std::io::Error>(call)
        }
    };
    let service = Service::new(&client)
        .handle(&of("run"), run)
        .handle(&of("relay"), relay)
        .handle(&of("hold"), hold)
        .concurrency(SLOTS)
        .lease(LEASE);
    let service = service.start().await?;
    service.registered().await;
    println!("{READY}");
    term.recv().await;
    service.stop().await;
    Ok(())
}

fn note(orders: &Orders, call: &Call) -> std::io::Result<()> {
    account::add(
        &starts(&orders.dir),
        &format!("{} {}", call.call, orders.name),
    )
}

/// Returns true in the first run of a call.
fn is_first(dir: &Path, call: &Call) -> std::io::Result<bool> {
    let mark = dir.join(format!("{}.{HELD}", call.call));
    match OpenOptions::new().write(true).create_new(true).open(mark) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
