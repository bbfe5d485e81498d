//! Health of a worker for its platform.

use std::sync::Arc;

use meshwork::Unhealthy;
use meshwork::protocol::bananas::{Client, Request, Worker};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use tokio::sync::{Notify, mpsc};

use super::support::{BOUND, Ground, LEASE};
use super::worker::held;

/// A worker is ready until shutdown begins, though a job still runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_tells_how_it_is() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let worker = held(&ground, started, Arc::clone(&go)).concurrency(7);
    let worker = worker.start().await.unwrap();
    let monitor = worker.monitor();
    worker.registered().await;
    assert_eq!((monitor.ready(), monitor.healthy()), (Ok(()), Ok(())));
    let id = ground.client.enqueue(Request::raw("held", "null")).await;
    starts.recv().await.unwrap();
    assert_eq!((monitor.name(), monitor.busy()), (worker.name(), 1));
    let stopping = tokio::spawn(worker.stop());
    let unhealthy = eventually("it is not ready", BOUND, async || monitor.ready().err()).await;
    assert_eq!(unhealthy, Unhealthy::Stopping);
    assert_eq!(monitor.healthy(), Ok(()));
    go.notify_one();
    assert_eq!(stopping.await.unwrap(), 0);
    let outcome = ground.client.wait(&id.unwrap(), BOUND).await.unwrap();
    assert!(outcome.succeeded);
    assert_eq!(monitor.busy(), 0);
}

/// After the server stopped answering, the registration expires, and health checks fail at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_a_server_is_not_ready() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let worker = Worker::new(&client).lease(LEASE).start().await.unwrap();
    let monitor = worker.monitor();
    worker.registered().await;
    drop(server);
    let unhealthy = eventually("it is not ready", BOUND, async || monitor.ready().err()).await;
    assert_eq!(unhealthy, Unhealthy::Unregistered);
}
