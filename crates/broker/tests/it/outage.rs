//! A server that hangs, dies and comes back: nobody waits for ever, and the same connection works
//! again, with every job that was there.

use std::time::{Duration, Instant};

use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::{Broker, Claim, Claimed, Completed, Error, PrefetchLists};
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Route;
use meshwork_test_servers::eventually;
use meshwork_test_servers::fakes::FakeSilent;
use meshwork_test_servers::servers::{RealServer, ServerOptions};

const WORKER: &str = "w1-a";
/// Far longer than a reconnection takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Duration of a blocked call.
const WAIT: Duration = Duration::from_millis(50);

async fn connect(server: &RealServer) -> Broker {
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    Broker::connect(&target, JobKeys::default()).await.unwrap()
}

fn job(id: &str) -> NewJob {
    NewJob::new(id.parse().unwrap(), Route::to("osis".parse().unwrap()), "1")
}

fn queue(broker: &Broker) -> String {
    format!("{}osis", broker.keys().work_prefix())
}

async fn claim(broker: &Broker, token: &str) -> Result<Vec<Claimed>, Error> {
    let claim = Claim {
        queues: &[queue(broker)],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: PATIENCE,
        worker: WORKER,
        token,
    };
    Ok(broker.claim(claim).await?.jobs)
}

/// The answer of a call that is repeated as long as its error may pass.
async fn answered<T>(what: &str, mut call: impl AsyncFnMut() -> Result<T, Error>) -> T {
    eventually(what, PATIENCE, async || match call().await {
        Ok(answer) => Some(answer),
        Err(error) if error.is_temporary() => None,
        Err(error) => panic!("{what}: {error}"),
    })
    .await
}

async fn survives_a_restart(options: ServerOptions) {
    let Some(mut server) = options.append_only().start() else {
        return;
    };
    let broker = connect(&server).await;
    broker.enqueue(&[job("j1"), job("j2")]).await.unwrap();
    let held = claim(&broker, "t1").await.unwrap();
    let blocking = broker.blocking_conn().await.unwrap();

    server.kill9();
    let refused = broker
        .complete(&held[0], b"42", b"", b"")
        .await
        .unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    let waited = broker
        .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
        .await;
    assert!(waited.unwrap_err().is_temporary());

    server.start_again();
    // The server knows none of the scripts any more, and the token is still in force.
    let said = answered("the report is taken", async || {
        broker.complete(&held[0], b"42", b"", b"").await
    });
    assert_eq!(said.await, Completed::Finished);
    let next = answered("a claim is taken", async || claim(&broker, "t2").await).await;
    assert_eq!(next[0].job.id, "j2");
    let blocking = answered("a new wait is possible", async || {
        broker.blocking_conn().await
    })
    .await;
    broker.enqueue(&[job("j3")]).await.unwrap();
    let came = broker
        .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
        .await;
    assert!(came.unwrap());
}

#[tokio::test]
async fn redis_dies_and_comes_back() {
    survives_a_restart(RealServer::redis()).await;
}

#[tokio::test]
async fn valkey_dies_and_comes_back() {
    survives_a_restart(RealServer::valkey()).await;
}

/// The socket stays open and nothing is answered: each wait ends soon after its time is over.
#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let broker = connect(&server).await;
    let parkings = (
        broker.blocking_conn().await.unwrap(),
        broker.blocking_conn().await.unwrap(),
    );
    server.pause();
    let begun = Instant::now();
    let (queue, id) = (queue(&broker), "j1".parse().unwrap());
    let (work, reply) = tokio::join!(
        broker.wait_for_job(&parkings.0, WORKER, &queue, WAIT),
        broker.wait_for_reply(&parkings.1, &id, WAIT)
    );
    assert!(work.unwrap_err().is_temporary());
    assert!(reply.unwrap_err().is_temporary());
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    server.resume();
    assert!(
        answered("it answers again", async || claim(&broker, "t1").await)
            .await
            .is_empty()
    );
}

/// A server that answers a handshake and then nothing, as behind the one address of a failover, does not block the
/// opening of a connection forever.
#[tokio::test]
async fn a_server_that_says_nothing_more_after_the_handshake() {
    let target = Target::parse(&FakeSilent::start().url(), TlsFiles::default()).unwrap();
    let broker = Broker::connect(&target, JobKeys::default()).await.unwrap();
    let blocking = tokio::time::timeout(PATIENCE, broker.blocking_conn()).await;
    let error = blocking.expect("it ends").unwrap_err();
    assert!(error.is_temporary(), "{error}");
}
