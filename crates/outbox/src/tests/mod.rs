//! The outbox on a real PostgreSQL and on files of SQLite, with a store in memory.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod database;
mod once;
#[cfg(feature = "postgres")]
mod pooler;
mod refusals;
#[cfg(feature = "sqlite")]
mod sqlite;
mod steps;

use meshwork::{Client, Job};
use serde::{Deserialize, Serialize};
use sqlx::Pool;

use crate::{Accepted, Outbox, Relay};
use database::TestDatabase;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Job)]
#[job(output = u64)]
struct Pay {
    order: u64,
}

async fn pay(job: Pay) -> Result<u64, String> {
    Ok(job.order)
}

/// Tables of their own, and a store.
struct Ground<D: TestDatabase> {
    pool: Pool<D>,
    outbox: Outbox,
    client: Client,
    _home: D::Home,
}

impl<D: TestDatabase> Ground<D> {
    /// `None`: this machine has no such database, and the test has been reported as skipped.
    async fn new(test: &'static str) -> Option<Self> {
        let (pool, home) = D::start(test).await?;
        let outbox = Outbox::in_schema(test).unwrap();
        outbox.migrate(&pool).await.unwrap();
        Some(Self {
            pool,
            outbox,
            client: Client::in_memory(),
            _home: home,
        })
    }

    fn relay(&self) -> Relay<D> {
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

    /// Runs a statement on the tables. `ROWS` and `PROCESSED` are their names, `EFFECTS` that of one of the test, `DUE` is the
    /// column of the time of the next attempt, `NOW` the time, and `HOUR` an hour.
    async fn change(&self, sql: &str) {
        let (due, now, hour) = D::TIMES;
        let tables = &self.outbox.tables;
        let names = [
            ("ROWS", tables.outbox(D::SEPARATOR)),
            ("PROCESSED", tables.processed(D::SEPARATOR)),
            ("EFFECTS", self.effects()),
            ("DUE", due.to_owned()),
            ("NOW", now.to_owned()),
            ("HOUR", hour.to_owned()),
        ];
        let sql = names
            .iter()
            .fold(sql.to_owned(), |sql, (name, with)| sql.replace(name, with));
        D::run(&self.pool, sql).await;
    }

    fn effects(&self) -> String {
        let rows = self.outbox.tables.outbox(D::SEPARATOR);
        rows.replace("meshwork_outbox", "effects")
    }

    /// Lets the time pass in which the rows of a killed relay are held.
    async fn lapse(&self) {
        self.change(D::LAPSE).await;
    }
}
