//! Shared helpers for tests of several servers: one type of job, and calls that are repeated after temporary errors.
//! The test kit starts the servers.

use std::time::Duration;

use meshwork_broker::conn::{ConnectError, Target, TlsFiles};
use meshwork_broker::{Broker, Claim, Claimed, Error, PrefetchLists};
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Route;
use meshwork_test_servers::eventually;

pub(crate) const WORKER: &str = "w1-a";
/// Far longer than a failover takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn connect(url: &str, keys: JobKeys) -> Result<Broker, ConnectError> {
    let target = Target::parse(url, TlsFiles::default())?;
    Broker::connect(&target, keys).await
}

pub(crate) fn job(id: &str) -> NewJob {
    NewJob::new(id.parse().unwrap(), Route::to("osis".parse().unwrap()), "1")
}

pub(crate) fn queue(broker: &Broker) -> String {
    format!("{}osis", broker.keys().work_prefix())
}

pub(crate) async fn claim(broker: &Broker) -> Result<Vec<Claimed>, Error> {
    let claim = Claim {
        queues: &[queue(broker)],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 10,
        ahead: 0,
        lease: PATIENCE,
        worker: WORKER,
        token: "t1",
    };
    Ok(broker.claim(claim).await?.jobs)
}

/// The answer of a call that is repeated as long as its error may pass.
pub(crate) async fn answered<T>(what: &str, mut call: impl AsyncFnMut() -> Result<T, Error>) -> T {
    eventually(what, PATIENCE, async || match call().await {
        Ok(answer) => Some(answer),
        Err(error) if error.is_temporary() => None,
        Err(error) => panic!("{what}: {error}"),
    })
    .await
}
