//! The keeper and its connections: what shares one with the renewals does them no harm, and what broke is soon back.

use std::time::Duration;

use crate::engines::embedded;
use meshwork::{Client, WorkerHandle};
use meshwork_broker::Broker;
use meshwork_conformance::moody::{Mood, Moody};
use meshwork_model::keys::hero::JobKeys;

use super::{PATIENCE, worker};
use crate::worker_support::{Scripted, raw};

/// A mark of control calls that renewals lack.
const CONTROL: &str = "ctl:type:osis";
/// A lease so short that a connection that broke is soon missed.
const SHORT: Duration = Duration::from_millis(300);
/// A renewal that missed it and a short pause, with time for a busy machine; the longest pause is at least 500 ms.
const SOON: Duration = Duration::from_millis(400);

/// A worker over such a connection, and a client beside it.
async fn over(mood: Option<(&'static str, Mood)>) -> (Moody, WorkerHandle, Client) {
    let client = embedded();
    let moody = Moody::new(client.broker().conn().clone(), mood);
    let conn = meshwork_broker::conn::Conn::new(moody.clone());
    let over = Client::new(Broker::new(conn, JobKeys::default()));
    let worker = worker(&over, &Scripted::echo()).lease(SHORT);
    let worker = worker.start().await.unwrap();
    tokio::time::timeout(PATIENCE, worker.registered())
        .await
        .expect("it renews");
    (moody, worker, client)
}

/// Several calls that are met so, and how many connections the keeper needed.
async fn connections(mood: (&'static str, Mood)) -> usize {
    let (moody, worker, _client) = over(Some(mood)).await;
    tokio::time::timeout(PATIENCE, moody.met(4))
        .await
        .expect("it is called");
    worker.stop().await;
    moody.carriers(CONTROL)
}

#[tokio::test(flavor = "multi_thread")]
async fn control_that_is_not_answered_ends_no_renewal() {
    assert_eq!(connections((CONTROL, Mood::Silent)).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_word_that_breaks_off_ends_no_renewal() {
    assert_eq!(connections(("BLPOP", Mood::Broken)).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_broke_often_are_soon_back() {
    let (moody, worker, client) = over(None).await;
    let renewed = async || -> Vec<(String, f64)> {
        raw(
            &client,
            &["ZRANGE", "hero:q:feeds", "0", "-1", "WITHSCORES"],
        )
        .await
    };
    assert!(!renewed().await.is_empty());
    let took = moody.quickest_return(PATIENCE, renewed).await;
    assert!(took < SOON, "{took:?}");
    worker.stop().await;
}
