//! The steps of a relay, each of which may be the last one of its process.

use std::time::Duration;

use meshwork::testing::drain;
use meshwork::{Retention, Worker};

use super::{Ground, Pay, pay};
use crate::relay::Relay;

/// The last step of a relay that is killed.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Last {
    Claim,
    Lock,
    Send,
    Settle,
}

/// Takes the steps of a batch up to this one.
async fn killed_after(last: Last, relay: &Relay, ground: &Ground) {
    let retained = relay.retained().await.unwrap();
    let claimed = relay.claim(retained.now_ms).await.unwrap();
    if last == Last::Claim {
        return;
    }
    let mut tx = ground.pool.begin().await.unwrap();
    let locked = relay.lock(&mut tx, &claimed).await.unwrap();
    if last >= Last::Send {
        let sent = relay.send(locked).await.unwrap();
        if last == Last::Settle {
            relay.settle(&mut tx, &sent).await.unwrap();
        }
    }
    // The transaction ends without a commit, as with its connection.
}

#[tokio::test]
async fn a_transaction_decides() {
    let Some(ground) = Ground::new("decides").await else {
        return;
    };
    let mut tx = ground.pool.begin().await.unwrap();
    ground
        .outbox
        .enqueue(&mut tx, Pay { order: 1 })
        .await
        .unwrap();
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![])
    );
    tx.rollback().await.unwrap();
    let kept = ground.commit(2).await;
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![2])
    );
    let job = ground.client.job::<Pay>(kept.id.clone());
    assert_eq!(job.record().await.unwrap().id, kept.id.as_str());
    drain(&ground.client, Worker::new(&ground.client).job(pay))
        .await
        .unwrap();
    assert_eq!(job.result().await.unwrap(), 2);
}

#[tokio::test]
async fn a_relay_may_be_killed_after_each_step() {
    let Some(ground) = Ground::new("killed").await else {
        return;
    };
    let mut orders = 0;
    for last in [Last::Claim, Last::Lock, Last::Send, Last::Settle] {
        for ran in [false, true] {
            orders += 1;
            ground.commit(orders).await;
            killed_after(last, &ground.relay(), &ground).await;
            if ran {
                let worker = Worker::new(&ground.client).job(pay);
                drain(&ground.client, worker).await.unwrap();
            }
            assert_eq!(ground.rows().await, (1, 0));
            ground.relay().drain().await.unwrap();
            assert_eq!(ground.rows().await, (0, 0));
        }
    }
    let all: Vec<_> = (1..=orders).collect();
    let worker = Worker::new(&ground.client).job(pay);
    let drained = drain(&ground.client, worker).await.unwrap();
    assert_eq!((drained.finished, ground.orders().await), (all.len(), all));
}

/// A job that has run and that retention has deleted is not enqueued again.
#[tokio::test]
async fn a_pruned_job_is_not_enqueued_again() {
    let Some(ground) = Ground::new("pruned").await else {
        return;
    };
    let row = ground.commit(1).await;
    killed_after(Last::Send, &ground.relay(), &ground).await;
    // Two hours pass, and another job ends.
    ground
        .change("UPDATE ROWS SET attempted_ms = attempted_ms - 7200000")
        .await;
    drain(&ground.client, Worker::new(&ground.client).job(pay))
        .await
        .unwrap();
    ground.client.enqueue(Pay { order: 2 }).await.unwrap();
    drain(&ground.client, Worker::new(&ground.client).job(pay))
        .await
        .unwrap();
    let retention = Retention {
        age: Duration::from_secs(3600),
        count: 1,
    };
    let (deleted, _) = ground.client.broker().prune(retention).await.unwrap();
    assert_eq!((deleted, ground.orders().await), (1, vec![2]));
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 1), vec![2])
    );
    let errors = ground.outbox.errors(&ground.pool, None).await.unwrap();
    assert_eq!((errors.len(), errors[0].id.as_str()), (1, row.id.as_str()));
    assert!(
        errors[0].error.contains("may have enqueued"),
        "{}",
        errors[0].error
    );
    // An operator decides.
    let ids = [errors[0].id.clone()];
    assert_eq!(
        ground.outbox.retry(&ground.pool, Some(&ids)).await.unwrap(),
        1
    );
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![1, 2])
    );
}

/// A job that retention has left, although it deleted others, is found.
#[tokio::test]
async fn a_job_beyond_the_reach_is_looked_for() {
    let Some(ground) = Ground::new("looked_for").await else {
        return;
    };
    ground.commit(1).await;
    killed_after(Last::Send, &ground.relay(), &ground).await;
    drain(&ground.client, Worker::new(&ground.client).job(pay))
        .await
        .unwrap();
    // All that ended before has been deleted.
    ground.change("UPDATE ROWS SET attempted_ms = 1").await;
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![1])
    );
}

#[tokio::test]
async fn relays_share_rows() {
    let Some(ground) = Ground::new("shared").await else {
        return;
    };
    for order in 0..3 {
        ground.commit(order).await;
    }
    let [first, second] = [ground.relay(), ground.relay()];
    let claimed = first.claim(7).await.unwrap();
    assert!(claimed.iter().all(|row| row.earlier_ms.is_none()));
    // The later claim counts, and knows of the earlier one.
    let again = second.claim(9).await.unwrap();
    assert!(again.iter().all(|row| row.earlier_ms == Some(7)));
    let mut tx = ground.pool.begin().await.unwrap();
    assert!(first.lock(&mut tx, &claimed).await.unwrap().is_empty());
    assert_eq!(second.lock(&mut tx, &again[..2]).await.unwrap().len(), 2);
    // Locked rows are skipped by each step of others.
    let third = first.claim(11).await.unwrap();
    assert_eq!(third.len(), 1);
    let mut other = ground.pool.begin().await.unwrap();
    assert!(
        first
            .lock(&mut other, &again[..2])
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn an_id_is_taken_once() {
    let Some(ground) = Ground::new("taken").await else {
        return;
    };
    let mut tx = ground.pool.begin().await.unwrap();
    let [first, second] = [1, 2].map(|order| Pay { order });
    let first = ground
        .outbox
        .enqueue(&mut tx, first)
        .id("pay-1")
        .await
        .unwrap();
    let second = ground
        .outbox
        .enqueue(&mut tx, second)
        .id("pay-1")
        .await
        .unwrap();
    assert_eq!((first.is_new, second.is_new), (true, false));
    // An invalid job leaves the transaction usable.
    let invalid = ground
        .outbox
        .enqueue(&mut tx, Pay { order: 3 })
        .retries(1000);
    assert!(
        invalid
            .await
            .unwrap_err()
            .to_string()
            .contains("1000 retries")
    );
    tx.commit().await.unwrap();
    ground.relay().drain().await.unwrap();
    // As one that is in the store.
    let mut tx = ground.pool.begin().await.unwrap();
    ground
        .outbox
        .enqueue(&mut tx, Pay { order: 4 })
        .id("pay-1")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![1])
    );
}

#[tokio::test]
async fn options_reach_the_store() {
    let Some(ground) = Ground::new("options").await else {
        return;
    };
    let mut tx = ground.pool.begin().await.unwrap();
    let call = ground.outbox.enqueue(&mut tx, Pay { order: 1 });
    let later = call
        .delay(Duration::from_secs(3600))
        .retries(4)
        .priority(meshwork::Priority::High)
        .with(|request| request.timeout(Duration::from_secs(9)));
    let id = later.await.unwrap().id;
    tx.commit().await.unwrap();
    ground.relay().drain().await.unwrap();
    let worker = Worker::new(&ground.client).job(pay);
    let drained = drain(&ground.client, worker).await.unwrap();
    assert_eq!((drained.finished, drained.delayed), (0, 1));
    let record = ground.client.status(&id).await.unwrap();
    assert_eq!((record.retries, record.timeout), (4, 9));
}
