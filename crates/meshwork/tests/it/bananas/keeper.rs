//! The keeper and its connections: what shares one with the renewals does them no harm, and what broke is soon back.

use std::time::Duration;

use meshwork::protocol::bananas::{Client, Worker};
use meshwork_broker::bananas::Bananas;
use meshwork_broker::conn::Conn;
use meshwork_conformance::moody::{Mood, Moody};
use meshwork_model::bananas::{Cron, NewJob};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::JobId;
use meshwork_model::schedule::timing::Timing;

use super::support::{BOUND, Ground, LEASE};

/// A lease so short that a connection that broke is soon missed.
const SHORT: Duration = Duration::from_millis(300);
/// A renewal that missed it and a short pause, with time for a busy machine; the longest pause is at least 500 ms.
const SOON: Duration = Duration::from_millis(400);

/// A connection that is met so, and a worker over it.
fn over(ground: &Ground, mood: Option<(&'static str, Mood)>) -> (Moody, Worker) {
    let moody = Moody::new(ground.client.broker().conn().clone(), mood);
    let broker = Bananas::new(Conn::new(moody.clone()), Keys::default());
    (moody, Worker::new(&Client::new(broker)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_is_not_answered_ends_no_renewal() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let cron = Cron {
        name: "hushed".parse().unwrap(),
        timing: Timing::new("* * * * * *".parse().unwrap()),
        job: NewJob::new(JobId::foreign(String::new()), "note", "1"),
    };
    ground.client.put_schedule(&cron, false).await.unwrap();
    let (moody, worker) = over(&ground, Some(("hushed", Mood::Silent)));
    let worker = worker.lease(LEASE).start().await.unwrap();
    tokio::time::timeout(BOUND, moody.met(3)).await.unwrap();
    worker.stop().await;
    assert_eq!(moody.carriers("hushed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_broke_often_are_soon_back() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (moody, worker) = over(&ground, None);
    let worker = worker.lease(SHORT).start().await.unwrap();
    worker.registered().await;
    let renewed = async || -> Vec<(String, f64)> {
        let words = ["ZRANGE", "bananas:mw:feeds", "0", "-1", "WITHSCORES"];
        ground.say(&words).await
    };
    assert!(!renewed().await.is_empty());
    let took = moody.quickest_return(BOUND, renewed).await;
    assert!(took < SOON, "{took:?}");
    worker.stop().await;
}
