//! Settings that are out of their limits are refused by the workers of every protocol, and nothing is started.

use std::time::Duration;

use meshwork::protocol::{bananas, nooble};
use meshwork::runtime::JobContext;
use meshwork::{Client, Error, InvalidSetting, MAX_CONCURRENCY, Worker};
use meshwork_broker::bananas::Bananas;
use meshwork_broker::conn::Conn;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;

use crate::engines::embedded;
use crate::worker_support::raw;

/// Just too short for a lease.
const TOO_SHORT: Duration = Duration::from_millis(299);
/// Just too long for one.
const TOO_LONG: Duration = Duration::from_millis(3_600_001);

fn conn() -> Conn {
    Conn::embedded(&meshwork_embedded::Handle::in_memory())
}

fn hero(client: &Client) -> Worker {
    let echo = async |value: u8, _: JobContext| Ok::<_, String>(value);
    Worker::new(client).handle("echo", echo)
}

async fn refused_by_hero(client: &Client, worker: Worker) -> InvalidSetting {
    let refused = match worker.start().await {
        Err(Error::Setting(refused)) => refused,
        other => panic!("{other:?}"),
    };
    // No name is taken, and no listener is there.
    let keys: Vec<String> = raw(client, &["KEYS", "*"]).await;
    assert_eq!(keys, [""; 0]);
    refused
}

#[tokio::test]
async fn a_worker_of_hero_refuses_settings_by_name() {
    let client = &embedded();
    for (name, worker) in [
        ("lease", hero(client).lease(Duration::ZERO)),
        ("lease", hero(client).lease(TOO_SHORT)),
        ("lease", hero(client).lease(TOO_LONG)),
        ("concurrency", hero(client).concurrency(0)),
        ("concurrency", hero(client).concurrency(MAX_CONCURRENCY + 1)),
        (
            "shutdown_timeout",
            hero(client).shutdown_timeout(Duration::MAX),
        ),
        ("cancel_grace", hero(client).cancel_grace(Duration::MAX)),
    ] {
        assert_eq!(refused_by_hero(client, worker).await.name, name);
    }
}

/// A lease of 0 was an interval of 0 in the heartbeat thread, which panicked, and no timeout overflowed the clock.
#[tokio::test]
async fn a_worker_of_bananas_refuses_settings_by_name() {
    let client = bananas::Client::new(Bananas::new(conn(), BananasKeys::default()));
    let worker = || bananas::Worker::new(&client);
    for (name, worker) in [
        ("lease", worker().lease(Duration::ZERO)),
        ("lease", worker().lease(TOO_SHORT)),
        ("lease", worker().lease(TOO_LONG)),
        ("timeout", worker().timeout(Duration::MAX)),
        ("timeout", worker().timeout(Duration::ZERO)),
        ("concurrency", worker().concurrency(0)),
        ("concurrency", worker().concurrency(MAX_CONCURRENCY + 1)),
        ("shutdown_timeout", worker().shutdown_timeout(Duration::MAX)),
    ] {
        match worker.start().await {
            Err(Error::Setting(refused)) => assert_eq!(refused.name, name),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_service_refuses_settings_by_name() {
    let names = NoobleKeys::new(Namespace::nooble(), None, Dialect::Lists);
    let client = nooble::Client::new(Nooble::new(conn(), names), "demo");
    let service = || nooble::Service::new(&client);
    for (name, service) in [
        ("lease", service().lease(Duration::ZERO)),
        ("lease", service().lease(TOO_SHORT)),
        ("lease", service().lease(TOO_LONG)),
        ("timeout", service().timeout(Duration::MAX)),
        ("timeout", service().timeout(Duration::ZERO)),
        ("concurrency", service().concurrency(0)),
        ("concurrency", service().concurrency(MAX_CONCURRENCY + 1)),
        (
            "shutdown_timeout",
            service().shutdown_timeout(Duration::MAX),
        ),
    ] {
        match service.start().await {
            Err(nooble::Error::Setting(refused)) => assert_eq!(refused.name, name),
            other => panic!("{other:?}"),
        }
    }
}

/// The longest and the shortest settings are taken, and a job is run with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_with_settings_at_their_limits() {
    let client = embedded();
    let longest = Duration::from_secs(3650 * 86_400);
    let worker = hero(&client)
        .lease(Duration::from_millis(300))
        .concurrency(MAX_CONCURRENCY)
        .cancel_grace(longest)
        .shutdown_timeout(longest);
    let worker = worker.start().await.unwrap();
    let seven: u8 = client.call_named("echo", &7).await.unwrap();
    assert_eq!(seven, 7);
    worker.stop().await;
}
