//! Waiting for a job: by notification, and by polling without one.

use std::time::{Duration, Instant};

use meshwork::protocol::bananas::Request;
use meshwork_model::bananas::Outcome;
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use tokio::task::JoinHandle;

use super::support::{BOUND, Ground};

/// More than one client has connections to listen on.
const MANY: usize = 20;

type Waiting = JoinHandle<Result<Outcome, meshwork::Error>>;

fn wait(ground: &Ground, id: &JobId) -> Waiting {
    let (client, id) = (ground.client.clone(), id.clone());
    tokio::spawn(async move { client.wait(&id, BOUND).await })
}

/// Number of connections subscribed to a job.
async fn listeners(ground: &Ground, id: &JobId) -> usize {
    let channel = format!("bananas:result:notify:{id}");
    let (_, listeners): (String, usize) = ground.say(&["PUBSUB", "NUMSUB", &channel]).await;
    listeners
}

/// Completes the job as a foreign worker does, without a notification.
async fn done(ground: &Ground, id: &JobId) {
    let (key, at) = (format!("bananas:result:{id}"), "2026-01-02T03:04:05Z");
    let result = ["HSET", &key, "status", "completed", "completed_at", at];
    ground.say::<()>(&result).await;
}

async fn submitted(ground: &Ground) -> JobId {
    ground
        .client
        .enqueue(Request::raw("echo", "1"))
        .await
        .unwrap()
}

/// The SDKs in Python and TypeScript say another word than the worker in Go.
#[tokio::test(flavor = "multi_thread")]
async fn any_word_tells_of_the_end() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    for word in ["ready", "completed"] {
        let id = submitted(&ground).await;
        let waiting = wait(&ground, &id);
        eventually("it listens", BOUND, async || {
            (listeners(&ground, &id).await == 1).then_some(())
        })
        .await;
        done(&ground, &id).await;
        let channel = format!("bananas:result:notify:{id}");
        ground.say::<()>(&["PUBLISH", &channel, word]).await;
        assert!(waiting.await.unwrap().unwrap().succeeded);
        assert_eq!(listeners(&ground, &id).await, 0);
    }
    let listened = ground.connections("unsubscribe").await;
    assert_eq!(
        listened.len(),
        1,
        "the connection of the first wait serves the second"
    );
}

/// A worker that is killed between the result and the word.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_tells_is_seen() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let id = submitted(&ground).await;
    let waiting = wait(&ground, &id);
    eventually("it listens", BOUND, async || {
        (listeners(&ground, &id).await == 1).then_some(())
    })
    .await;
    done(&ground, &id).await;
    assert!(waiting.await.unwrap().unwrap().succeeded);
}

/// Those beyond the bound ask again and again.
#[tokio::test(flavor = "multi_thread")]
async fn more_waits_than_connections() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let mut waiting = Vec::new();
    for _ in 0..MANY {
        let id = submitted(&ground).await;
        waiting.push((wait(&ground, &id), id));
    }
    eventually("as many listen as may", BOUND, async || {
        let mut all = 0;
        for (_, id) in &waiting {
            all += listeners(&ground, id).await;
        }
        (all == 16).then_some(())
    })
    .await;
    for (_, id) in &waiting {
        done(&ground, id).await;
    }
    for (waiting, _) in waiting {
        assert!(waiting.await.unwrap().unwrap().succeeded);
    }
}

/// A connection that breaks while somebody waits holds up nothing, and the wait listens on another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_goes_on_when_its_connection_breaks() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let id = submitted(&ground).await;
    let waiting = wait(&ground, &id);
    let mut broken = Vec::new();
    for _ in 0..2 {
        let listens = eventually("it listens", BOUND, async || {
            let ours = ground.connections("subscribe").await.pop()?;
            (!broken.contains(&ours)).then_some(ours)
        })
        .await;
        // Others listen on this server too.
        ground.say::<()>(&["CLIENT", "KILL", "ID", &listens]).await;
        broken.push(listens);
    }
    done(&ground, &id).await;
    assert!(waiting.await.unwrap().unwrap().succeeded);
}

/// It ends with its patience.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_in_time() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let id = submitted(&ground).await;
    let (began, patience) = (Instant::now(), Duration::from_millis(200));
    let ended = ground.client.wait(&id, patience).await;
    assert!(matches!(ended, Err(meshwork::Error::JobWaitTimeout { .. })));
    assert!(began.elapsed() >= patience);
    let unknown = JobId::foreign("none".to_owned());
    let none = ground.client.wait(&unknown, patience).await;
    assert!(matches!(none, Err(meshwork::Error::JobNotFound { .. })));
}
