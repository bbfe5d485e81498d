//! The steps of a relay, each of which may be the last one of its process.

use std::time::Duration;

use meshwork::testing::drain;
use meshwork::{Retention, Worker};

use super::database::{TestDatabase, on_each_database};
use super::{Ground, Pay, pay};

on_each_database!(
    a_transaction_decides
    a_relay_may_be_killed_after_each_step
    a_pruned_job_is_not_enqueued_again
    a_job_beyond_the_reach_is_looked_for
    relays_share_rows
    an_id_is_taken_once
    options_reach_the_store
);

/// The last step of a relay that is killed.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Last {
    Claim,
    Hold,
    Send,
    Settle,
}

/// Takes the steps of a batch up to this one.
async fn killed_after<D: TestDatabase>(last: Last, ground: &Ground<D>) {
    let relay = ground.relay();
    let retained = relay.retained().await.unwrap();
    let claimed = relay.claim(retained.now_ms).await.unwrap().rows;
    if last > Last::Claim {
        let (hold, held) = relay.hold(&claimed).await.unwrap();
        if last >= Last::Send {
            let sent = relay.send(held).await.unwrap();
            if last == Last::Settle {
                // The transaction ends without a commit, as with its connection.
                D::settle(hold, &sent).await.unwrap();
            }
        }
    }
    ground.lapse().await;
}

async fn a_transaction_decides<D: TestDatabase>(ground: Ground<D>) {
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

async fn a_relay_may_be_killed_after_each_step<D: TestDatabase>(ground: Ground<D>) {
    let mut orders = 0;
    for last in [Last::Claim, Last::Hold, Last::Send, Last::Settle] {
        for ran in [false, true] {
            orders += 1;
            ground.commit(orders).await;
            killed_after(last, &ground).await;
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
async fn a_pruned_job_is_not_enqueued_again<D: TestDatabase>(ground: Ground<D>) {
    let row = ground.commit(1).await;
    killed_after(Last::Send, &ground).await;
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
async fn a_job_beyond_the_reach_is_looked_for<D: TestDatabase>(ground: Ground<D>) {
    ground.commit(1).await;
    killed_after(Last::Send, &ground).await;
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

/// Two relays at once move each row, and each job is stored once.
async fn relays_share_rows<D: TestDatabase>(ground: Ground<D>) {
    const ROWS: u64 = 1200;
    let mut tx = ground.pool.begin().await.unwrap();
    for order in 0..ROWS {
        let call = ground.outbox.enqueue(&mut tx, Pay { order });
        call.await.unwrap();
    }
    tx.commit().await.unwrap();
    let (first, second) = (ground.relay(), ground.relay());
    let (first, second) = tokio::join!(first.drain(), second.drain());
    first.unwrap();
    second.unwrap();
    // A relay skips what another one holds.
    ground.relay().drain().await.unwrap();
    assert_eq!(ground.rows().await, (0, 0));
    assert_eq!(ground.orders().await, (0..ROWS).collect::<Vec<_>>());
}

/// A relay skips rows that another one holds, at each of its steps.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn locked_rows_are_skipped() {
    let ground = Ground::<sqlx::Postgres>::new("locked_rows").await;
    let Some(ground) = ground else {
        return;
    };
    for order in 0..3 {
        ground.commit(order).await;
    }
    let [first, second] = [ground.relay(), ground.relay()];
    let claimed = first.claim(7).await.unwrap().rows;
    assert!(claimed.iter().all(|row| row.earlier_ms.is_none()));
    // The later claim counts, and knows of the earlier one.
    let again = second.claim(9).await.unwrap().rows;
    assert!(again.iter().all(|row| row.earlier_ms == Some(7)));
    assert!(first.hold(&claimed).await.unwrap().1.is_empty());
    let (_hold, held) = second.hold(&again[..2]).await.unwrap();
    assert_eq!(held.len(), 2);
    assert_eq!(first.claim(11).await.unwrap().rows.len(), 1);
    assert!(first.hold(&again[..2]).await.unwrap().1.is_empty());
}

async fn an_id_is_taken_once<D: TestDatabase>(ground: Ground<D>) {
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

async fn options_reach_the_store<D: TestDatabase>(ground: Ground<D>) {
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
