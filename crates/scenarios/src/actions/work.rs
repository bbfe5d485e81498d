//! One worker process: the real service, whose handlers write each start down.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Client, Service};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, QueueManager};
use meshwork_model::name::Namespace;
use tokio::signal::unix::{SignalKind, signal};

use super::ActionsError;
use super::call::{Call, PATIENCE, inner, other};
use meshwork_test_servers::account;

/// Actions at once in each worker: all of a service's have fewer slots than there are calls for it.
const SLOTS: usize = 32;
/// Long enough for a machine that is busy with other things to renew it.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// What a worker says when it takes actions.
pub(super) const READY: &str = "ready";
/// What it says, with the call, when a handler holds on until it is killed.
pub(super) const HELD: &str = "held";

/// What a worker is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Orders {
    /// The server.
    #[arg(long)]
    pub(super) url: String,
    /// Where the files of the account are.
    #[arg(long)]
    pub(super) dir: PathBuf,
    /// The service.
    #[arg(long)]
    pub(super) service: String,
    /// What it calls itself in the account.
    #[arg(long)]
    pub(super) name: String,
    /// Whose wire.
    #[arg(long)]
    pub(super) dialect: Dialect,
}

/// The file with each start: the call, and who ran it.
pub(super) fn starts(dir: &Path) -> PathBuf {
    dir.join("starts")
}

/// A client of a service.
pub(super) async fn client(
    url: &str,
    dialect: Dialect,
    service: &str,
) -> Result<Client, ActionsError> {
    let names = QueueManager::new(Namespace::nooble(), None, dialect);
    let target = Target::parse(url, TlsFiles::default());
    let target = target.map_err(meshwork::protocol::nooble::Error::from)?;
    let broker = Nooble::connect(&target, names).await;
    let broker = broker.map_err(meshwork::protocol::nooble::Error::from)?;
    Ok(Client::new(broker, service))
}

/// Serves until SIGTERM.
///
/// # Errors
/// When there is no server, or the system gives no signals.
#[allow(
    clippy::print_stdout,
    reason = "so its parent is told, and need not look"
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

/// Whether this is the first run of a call.
fn is_first(dir: &Path, call: &Call) -> std::io::Result<bool> {
    let mark = dir.join(format!("{}.{HELD}", call.call));
    match OpenOptions::new().write(true).create_new(true).open(mark) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
