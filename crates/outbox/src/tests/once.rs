//! Effects that happen once, notifications, and retention.

use std::time::Duration;

use meshwork::testing::drain;
use meshwork::{JobContext, JobError, State, Worker};
use sqlx::Pool;

use super::database::{TestDatabase, on_each_database};
use super::{Ground, Pay};
use crate::Outbox;

/// Bound of each wait.
const PATIENCE: Duration = Duration::from_secs(30);

on_each_database!(
    an_effect_happens_once
    a_second_transaction_waits_for_the_first
    old_ids_are_deleted
    a_commit_wakes_the_relay
);

/// The table of effects.
#[derive(Clone)]
struct Effects(String);

/// Applies an effect, and fails at the first attempt before or after the commit.
async fn pay_once<D: TestDatabase>(
    job: Pay,
    context: JobContext,
    State(pool): State<Pool<D>>,
    State(outbox): State<Outbox>,
    State(Effects(table)): State<Effects>,
) -> Result<u64, JobError> {
    let failed = |error: &dyn std::fmt::Display| JobError::retry(error.to_string());
    let mut tx = pool.begin().await.map_err(|error| failed(&error))?;
    let first = outbox.processed_once(&mut tx, &context).await;
    if first.map_err(|error| failed(&error))? {
        let effect = D::effect(&mut tx, &table, job.order.cast_signed()).await;
        effect.map_err(|error| failed(&error))?;
    }
    if context.attempt == 1 && job.order == 0 {
        return Err(JobError::retry("before the commit"));
    }
    tx.commit().await.map_err(|error| failed(&error))?;
    match context.attempt {
        1 => Err(JobError::retry("after the commit")),
        _ => Ok(job.order),
    }
}

async fn an_effect_happens_once<D: TestDatabase>(ground: Ground<D>) {
    ground.change("CREATE TABLE EFFECTS (number bigint)").await;
    for order in 0..2 {
        let mut tx = ground.pool.begin().await.unwrap();
        let call = ground.outbox.enqueue(&mut tx, Pay { order }).retries(1);
        call.with(|request| request.backoff(Duration::ZERO))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    ground.relay().drain().await.unwrap();
    let worker = Worker::new(&ground.client).job(pay_once::<D>);
    let worker = worker
        .state(ground.pool.clone())
        .state(ground.outbox.clone())
        .state(Effects(ground.effects()));
    let mut finished = 0;
    while finished < 2 {
        finished = drain(&ground.client, worker.clone())
            .await
            .unwrap()
            .finished;
    }
    assert_eq!(D::count(&ground.pool, &ground.effects()).await, 2);
}

async fn a_second_transaction_waits_for_the_first<D: TestDatabase>(ground: Ground<D>) {
    let begin = async || ground.pool.begin().await.unwrap();
    let (mut first, mut second, mut third) = (begin().await, begin().await, begin().await);
    let outbox = &ground.outbox;
    assert!(outbox.first_time(&mut first, "j").await.unwrap());
    let (first_again, ()) = tokio::join!(outbox.first_time(&mut second, "j"), async {
        first.rollback().await.unwrap();
    });
    assert!(first_again.unwrap());
    second.commit().await.unwrap();
    assert!(!outbox.first_time(&mut third, "j").await.unwrap());
}

async fn old_ids_are_deleted<D: TestDatabase>(ground: Ground<D>) {
    let sql = "WITH RECURSIVE old(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM old WHERE n < 10001) \
               INSERT INTO PROCESSED SELECT 'job-' || n, NOW - 48 * HOUR FROM old";
    ground.change(sql).await;
    let mut tx = ground.pool.begin().await.unwrap();
    assert!(ground.outbox.first_time(&mut tx, "new").await.unwrap());
    tx.commit().await.unwrap();
    let day = Duration::from_secs(86_400);
    let mut deleted = Vec::new();
    for _ in 0..3 {
        deleted.push(
            ground
                .outbox
                .prune_processed(&ground.pool, day)
                .await
                .unwrap(),
        );
    }
    assert_eq!(deleted, [10_000, 1, 0]);
    let mut tx = ground.pool.begin().await.unwrap();
    assert!(!ground.outbox.first_time(&mut tx, "new").await.unwrap());
}

/// A relay that would poll in an hour has a new row at once, also after its connection was lost.
async fn a_commit_wakes_the_relay<D: TestDatabase>(ground: Ground<D>) {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let relay = ground.relay().poll(Duration::from_secs(3600));
    let running = tokio::spawn(relay.run_until(async { drop(stopped.await) }));
    for order in 0..3 {
        if order == 2 {
            ground.change(D::INTERRUPTION).await;
        }
        let id = ground.commit(order).await.id;
        let stored = async {
            while ground.client.status(&id).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, stored).await.unwrap();
    }
    drop(stop);
    let ended = tokio::time::timeout(PATIENCE, running).await.unwrap();
    ended.unwrap().unwrap();
}
