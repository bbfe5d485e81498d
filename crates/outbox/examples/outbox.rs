//! An order and its job in one transaction, and a payment that happens once, with the relay and the worker in one program.
//! `DATABASE_URL=postgres://… cargo run -p meshwork-outbox --example outbox`
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use meshwork::{Client, Job, JobContext, State, Worker};
use meshwork_outbox::sqlx::{self, PgPool};
use meshwork_outbox::{Error, Outbox, Relay};
use serde::{Deserialize, Serialize};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY, paid int DEFAULT 0)";

#[derive(Serialize, Deserialize, Job)]
#[job(retries = 3, backoff = "100ms")]
struct Pay {
    order: i64,
}

async fn place_order(pool: &PgPool, outbox: &Outbox, in_stock: bool) -> Result<(), Error> {
    let mut tx = pool.begin().await?;
    let order = sqlx::query_scalar("INSERT INTO orders DEFAULT VALUES RETURNING id");
    let order = order.fetch_one(&mut *tx).await?;
    outbox.enqueue(&mut tx, Pay { order }).await?;
    match in_stock {
        true => tx.commit().await?,
        false => tx.rollback().await?,
    }
    Ok(())
}

async fn pay(job: Pay, context: JobContext, State(pool): State<PgPool>) -> Result<(), Error> {
    let mut tx = pool.begin().await?;
    if Outbox::new().processed_once(&mut tx, &context).await? {
        let paid = sqlx::query("UPDATE orders SET paid = paid + 1 WHERE id = $1");
        paid.bind(job.order).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    // The handler fails after its commit, so that the job runs again.
    match context.attempt {
        1 => Err(Error::Timeout(1)),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    let (client, outbox) = (Client::in_memory(), Outbox::new());
    outbox.migrate(&pool).await?;
    sqlx::query(TABLE).execute(&pool).await?;
    for number in 0..10 {
        place_order(&pool, &outbox, number % 2 == 0).await?;
    }
    Relay::new(&pool, &client).drain().await?;
    let worker = Worker::new(&client)
        .job(pay)
        .state(pool.clone())
        .start()
        .await?;
    for (job, _) in meshwork::testing::enqueued::<Pay>(&client).await? {
        job.result().await?;
    }
    worker.stop().await;
    let totals = sqlx::query_as("SELECT count(*), sum(paid) FROM orders");
    let (orders, payments): (i64, i64) = totals.fetch_one(&pool).await?;
    println!("{orders} orders, {payments} payments");
    Ok(())
}
