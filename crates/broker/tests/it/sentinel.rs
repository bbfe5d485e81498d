//! A real master with a replica and three sentinels: whoever is the master is found, and what replicas have
//! confirmed outlives a failover.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, WORKER, answered, claim, job, queue};
use meshwork_broker::conn::ConnectError;
use meshwork_broker::{Broker, Completed, Enqueued, Error, WaitReplicas};
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealSentinels, RealServer};

/// Time until calls succeed after a failover: a second or two, and more on a busy machine.
const SOON: Duration = Duration::from_secs(15);
/// Timeout for confirmations of live replicas.
const CONFIRM: Duration = Duration::from_secs(10);

/// The login of the URL is for the servers, so the error names that of the sentinels.
#[tokio::test]
async fn a_sentinel_with_a_password_says_which_login_it_needs() {
    let Some(sentinels) = RealSentinels::start(RealServer::redis(), None).await else {
        return;
    };
    for sentinel in sentinels.sentinels() {
        let set = ["ACL", "SETUSER", "default", "resetpass", ">sesame"];
        sentinel.say::<redis::Value>(&set).unwrap();
    }
    for (login, said) in [
        ("", "NOAUTH"),
        ("?sentinel_password=wrong", "authentication"),
    ] {
        let error = connect(&sentinels.url(login)).await.unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, ConnectError::RefusedBySentinels { .. }),
            "{text}"
        );
        assert!(
            text.contains("sentinel_password=") && !error.is_temporary(),
            "{text}"
        );
        assert!(text.to_lowercase().contains(&said.to_lowercase()), "{text}");
    }
    connect(&sentinels.url("?sentinel_password=sesame"))
        .await
        .unwrap();
}

async fn connect(url: &str) -> Result<Broker, ConnectError> {
    crate::common::connect(url, JobKeys::default()).await
}

/// Waits until the replica is the master, and returns the time.
async fn promoted(sentinels: &RealSentinels) -> Instant {
    let replica = &sentinels.servers()[1];
    eventually("the replica is promoted", PATIENCE, async || {
        (replica.info("role")? == "master").then(Instant::now)
    })
    .await
}

/// A job that a replica confirmed exists after a failover, and is reported and claimed within five seconds of it. A
/// waiting client is notified.
async fn fails_over(end: impl FnOnce(&mut RealServer)) {
    let Some(mut sentinels) = RealSentinels::start(RealServer::redis(), None).await else {
        return;
    };
    let url = sentinels.url("/2?wait_replicas=1&wait_timeout_ms=10000");
    let broker = connect(&url).await.unwrap();
    broker.enqueue(&[job("j1")]).await.unwrap();
    let held = claim(&broker).await.unwrap();
    // What comes after the claim confirms it too.
    broker.enqueue(&[job("j2"), job("j3")]).await.unwrap();
    let blocking = broker.blocking_conn().await.unwrap();
    let elsewhere = broker.keys().work_queue_type(&"none".parse().unwrap());

    end(sentinels.server_mut(0));
    let (waited, soon) = tokio::join!(
        broker.wait_for_job(&blocking, WORKER, &elsewhere, PATIENCE),
        async {
            let (at, said) = tokio::join!(
                promoted(&sentinels),
                answered("the report is taken", async || {
                    broker.complete(&held[0], b"42", b"", b"").await
                })
            );
            assert_eq!(said, Completed::Finished);
            at.elapsed()
        }
    );
    assert!(waited.unwrap_err().is_temporary());
    assert!(soon < SOON, "{soon:?}");
    let jobs = answered("jobs can be claimed", async || claim(&broker).await).await;
    assert_eq!(jobs.len(), 2);
    let blocking = answered("a new wait is possible", async || {
        broker.blocking_conn().await
    })
    .await;
    // Nobody is left to confirm anything.
    let quick = WaitReplicas {
        replicas: 1,
        timeout: Duration::from_millis(20),
    };
    let error = broker
        .clone()
        .acknowledge(quick)
        .enqueue(&[job("j4")])
        .await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::NotReplicated { confirmed: 0, .. }),
        "{error}"
    );
    assert!(
        broker
            .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_master_that_dies() {
    fails_over(RealServer::kill9).await;
}

#[tokio::test]
async fn a_master_that_hangs() {
    fails_over(|master| master.pause()).await;
}

/// An orderly failover while nothing fails: the old master becomes a replica and refuses what writes.
#[tokio::test]
async fn a_master_that_becomes_a_replica() {
    let Some(sentinels) = RealSentinels::start(RealServer::redis(), None).await else {
        return;
    };
    let broker = connect(&sentinels.url("")).await.unwrap();
    broker.enqueue(&[job("j1")]).await.unwrap();
    let held = claim(&broker).await.unwrap();
    let failover = ["SENTINEL", "FAILOVER", "main"];
    sentinels.sentinels()[0].say::<()>(&failover).unwrap();
    promoted(&sentinels).await;
    eventually("the old master is a replica", PATIENCE, async || {
        (sentinels.servers()[0].info("role")? == "slave").then_some(())
    })
    .await;
    let said = answered("the report is taken", async || {
        broker.complete(&held[0], b"42", b"", b"").await
    });
    assert_eq!(said.await, Completed::Finished);
}

/// Sentinels and servers have passwords of their own.
#[tokio::test]
async fn passwords() {
    let servers = RealServer::redis().password("sesame");
    let Some(sentinels) = RealSentinels::start(servers, Some("pebble")).await else {
        return;
    };
    let broker = connect(&sentinels.url("?sentinel_password=pebble"))
        .await
        .unwrap();
    broker.enqueue(&[job("j1")]).await.unwrap();
    assert_eq!(claim(&broker).await.unwrap().len(), 1);
    for (wrong, reason) in [
        ("", "NOAUTH"),
        (
            "?sentinel_password=sesame",
            "Password authentication failed",
        ),
    ] {
        let said = connect(&sentinels.url(wrong))
            .await
            .unwrap_err()
            .to_string();
        let refused = said.contains("the sentinels refuse the credentials");
        assert!(refused && said.contains(reason), "{said}");
        assert!(
            !said.contains("sesame") && !said.contains("pebble"),
            "{said}"
        );
    }
    let unknown = sentinels
        .url("?sentinel_password=pebble")
        .replace("/main?", "/other?");
    let said = connect(&unknown).await.unwrap_err().to_string();
    assert!(
        said.contains("no service of that name") && said.contains("other"),
        "{said}"
    );
}

/// A replica that is late: the job is stored and said not to be confirmed; saying it again is safe.
async fn confirmation(start: RealServer, replica: impl FnOnce(&str) -> RealServer) {
    let replica = replica(&start.port().to_string());
    eventually("the replica follows", PATIENCE, async || {
        (replica.info("master_link_status")? == "up").then_some(())
    })
    .await;
    let broker = connect(&start.url()).await.unwrap();
    let rule = |timeout| WaitReplicas {
        replicas: 1,
        timeout,
    };
    let patient = broker.clone().acknowledge(rule(CONFIRM));
    assert_eq!(
        patient.enqueue(&[job("j1")]).await.unwrap(),
        [Enqueued::Stored]
    );
    replica.pause();
    let hasty = broker.clone().acknowledge(rule(Duration::from_millis(20)));
    for _ in 0..2 {
        let error = hasty.enqueue(&[job("j2")]).await.unwrap_err();
        assert!(error.is_temporary());
        let said = error.to_string();
        assert!(
            said.contains("job j2 is stored, but only 0 of 1 replicas"),
            "{said}"
        );
    }
    assert!(
        broker
            .inspect(&"j2".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    replica.resume();
    assert_eq!(
        patient.enqueue(&[job("j2")]).await.unwrap(),
        [Enqueued::Exists]
    );
    assert_eq!(replica.say::<usize>(&["LLEN", &queue(&broker)]).unwrap(), 2);
}

#[tokio::test]
async fn redis_confirms() {
    let Some(master) = RealServer::redis().start() else {
        return;
    };
    let replica = |port: &str| RealServer::redis().args(&["--replicaof", "127.0.0.1", port]);
    confirmation(master, |port| replica(port).start().unwrap()).await;
}

#[tokio::test]
async fn valkey_confirms() {
    let Some(master) = RealServer::valkey().start() else {
        return;
    };
    let replica = |port: &str| RealServer::valkey().args(&["--replicaof", "127.0.0.1", port]);
    confirmation(master, |port| replica(port).start().unwrap()).await;
}
