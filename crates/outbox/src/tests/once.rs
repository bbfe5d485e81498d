//! Effects that happen once, notifications, and retention.

use std::time::Duration;

use meshwork::testing::drain;
use meshwork::{JobContext, JobError, State, Worker};
use sqlx::PgPool;

use super::{Ground, Pay};
use crate::Outbox;

/// Bound of each wait.
const PATIENCE: Duration = Duration::from_secs(30);

async fn count(pool: &PgPool) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM once.effects");
    count.fetch_one(pool).await.unwrap()
}

/// Applies an effect, and fails at the first attempt before or after the commit.
async fn pay_once(
    job: Pay,
    context: JobContext,
    State(pool): State<PgPool>,
    State(outbox): State<Outbox>,
) -> Result<u64, JobError> {
    let failed = |error: &dyn std::fmt::Display| JobError::retry(error.to_string());
    let mut tx = pool.begin().await.map_err(|error| failed(&error))?;
    let first = outbox.processed_once(&mut tx, &context).await;
    if first.map_err(|error| failed(&error))? {
        let effect = sqlx::query("INSERT INTO once.effects VALUES ($1)");
        let effect = effect.bind(job.order.cast_signed()).execute(&mut *tx).await;
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

#[tokio::test]
async fn an_effect_happens_once() {
    let Some(ground) = Ground::new("once").await else {
        return;
    };
    ground
        .change("CREATE TABLE once.effects (number bigint)")
        .await;
    for order in 0..2 {
        let mut tx = ground.pool.begin().await.unwrap();
        let call = ground.outbox.enqueue(&mut tx, Pay { order }).retries(1);
        call.with(|request| request.backoff(Duration::ZERO))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    ground.relay().drain().await.unwrap();
    let worker = Worker::new(&ground.client).job(pay_once);
    let worker = worker
        .state(ground.pool.clone())
        .state(ground.outbox.clone());
    let mut finished = 0;
    while finished < 2 {
        finished = drain(&ground.client, worker.clone())
            .await
            .unwrap()
            .finished;
    }
    assert_eq!(count(&ground.pool).await, 2);
}

#[tokio::test]
async fn a_second_transaction_waits_for_the_first() {
    let Some(ground) = Ground::new("waits").await else {
        return;
    };
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

#[tokio::test]
async fn old_ids_are_deleted() {
    let Some(ground) = Ground::new("old_ids").await else {
        return;
    };
    let sql = "INSERT INTO old_ids.meshwork_processed SELECT n::text, now() - interval '2 days' \
               FROM generate_series(1, 10001) AS n";
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
#[tokio::test]
async fn a_notification_wakes_the_relay() {
    let Some(ground) = Ground::new("notified").await else {
        return;
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let relay = ground.relay().poll(Duration::from_secs(3600));
    let running = tokio::spawn(relay.run_until(async { drop(stopped.await) }));
    for order in 0..3 {
        if order == 2 {
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE query LIKE 'LISTEN \"meshwork_outbox_notified\"%'";
            ground.change(sql).await;
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
