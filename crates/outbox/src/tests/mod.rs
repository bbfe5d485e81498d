//! The outbox on a real PostgreSQL, with a store in memory.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod once;
mod refusals;
mod steps;

use meshwork::{Client, Job};
use meshwork_test_servers::servers::RealPostgres;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, PgPool};

use crate::{Accepted, Outbox, Relay};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Job)]
#[job(output = u64)]
struct Pay {
    order: u64,
}

async fn pay(job: Pay) -> Result<u64, String> {
    Ok(job.order)
}

/// Tables in a schema of their own, and a store.
struct Ground {
    pool: PgPool,
    outbox: Outbox,
    client: Client,
}

impl Ground {
    /// `None`: this machine has no PostgreSQL, and the test has been reported as skipped.
    async fn new(test: &'static str) -> Option<Self> {
        let start = move || RealPostgres::shared_for(test).map(RealPostgres::url);
        let url = tokio::task::spawn_blocking(start).await.unwrap()?;
        let outbox = Outbox::in_schema(test).unwrap();
        let pool = PgPool::connect(&url).await.unwrap();
        outbox.migrate(&pool).await.unwrap();
        let client = Client::in_memory();
        Some(Self {
            pool,
            outbox,
            client,
        })
    }

    fn relay(&self) -> Relay {
        Relay::new(&self.pool, &self.client).outbox(&self.outbox)
    }

    /// Commits a transaction with this job.
    async fn commit(&self, order: u64) -> Accepted {
        let mut tx = self.pool.begin().await.unwrap();
        let accepted = self.outbox.enqueue(&mut tx, Pay { order }).await.unwrap();
        tx.commit().await.unwrap();
        accepted
    }

    /// Returns the orders of the jobs in the store.
    async fn orders(&self) -> Vec<u64> {
        let (mut orders, mut from) = (Vec::new(), 0);
        loop {
            let page = self.client.list(from).await.unwrap();
            for job in page.jobs {
                let job = self.client.status(&job.job_id()).await.unwrap();
                let pay: Pay = serde_json::from_slice(&job.script).unwrap();
                orders.push(pay.order);
            }
            from = page.next;
            if from == 0 {
                break;
            }
        }
        orders.sort_unstable();
        orders
    }

    /// Returns the numbers of rows that wait, and that are set aside.
    async fn rows(&self) -> (u64, u64) {
        let backlog = self.outbox.backlog(&self.pool).await.unwrap();
        (backlog.waiting, backlog.set_aside)
    }

    /// Runs a statement on the table of rows.
    async fn change(&self, sql: &str) {
        let sql = sql.replace("ROWS", &self.outbox.tables.outbox);
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&self.pool)
            .await
            .unwrap();
    }
}
