//! One worker of the scenario: applies the effect of each job in the database.

use std::time::{Duration, Instant};

use meshwork::{Client, Job, JobContext, JobRequest, State, Worker, WorkerHandle, shutdown_signal};
use meshwork_outbox::sqlx::{Pool, Postgres, Sqlite};
use meshwork_outbox::{Error, Outbox};
use serde::{Deserialize, Serialize};

use super::database::{Kind, Scene};
use super::{END, LOOK};

/// Duration of a lease without a renewal.
const LEASE: Duration = Duration::from_secs(3);
/// Number of jobs at a time in each worker.
const CONCURRENCY: usize = 4;
/// Retries of a job, for the time in which the database is down.
const RETRIES: u32 = 50;
/// Pause before the first one.
const BACKOFF: Duration = Duration::from_millis(50);

/// The job of an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pay {
    pub(super) order: i64,
}

impl Job for Pay {
    const NAME: &'static str = "pay";
    type Input = ();
    type Output = ();

    fn defaults(&self, request: JobRequest) -> JobRequest {
        request.retries(RETRIES).backoff(BACKOFF)
    }
}

async fn pay<D: Scene>(
    job: Pay,
    context: JobContext,
    State(pool): State<Pool<D>>,
) -> Result<(), Error> {
    D::add_run(&pool, &context.job_id).await?;
    let mut tx = D::begin(&pool).await?;
    if Outbox::new().processed_once(&mut tx, &context).await? {
        D::add_effect(&mut tx, job.order).await?;
    }
    Ok(tx.commit().await?)
}

/// Works until SIGTERM, for the servers of `REDIS_URL` and `DATABASE_URL`.
///
/// # Errors
/// A variable is missing or wrong, or the server cannot be reached.
pub async fn be_worker() -> Result<(), String> {
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let (redis, database) = (variable("REDIS_URL")?, variable("DATABASE_URL")?);
    match Kind::of(&database) {
        Kind::Postgres => work::<Postgres>(&redis, &database).await,
        Kind::Sqlite => work::<Sqlite>(&redis, &database).await,
    }
}

async fn work<D: Scene>(redis: &str, database: &str) -> Result<(), String> {
    let pool = D::connections(database, CONCURRENCY as u32).map_err(|error| error.to_string())?;
    let (until, mut again) = (Instant::now() + END, tokio::time::interval(LOOK));
    let worker = loop {
        again.tick().await;
        match start(redis, &pool).await {
            Ok(worker) => break worker,
            // The server may be down.
            Err(_) if Instant::now() < until => {}
            Err(error) => return Err(error.to_string()),
        }
    };
    meshwork_test_servers::say("ready");
    shutdown_signal().await;
    worker.stop().await;
    Ok(())
}

async fn start<D: Scene>(url: &str, pool: &Pool<D>) -> Result<WorkerHandle, meshwork::Error> {
    let client = Client::open(url).await?;
    let worker = Worker::new(&client).job(pay::<D>).state(pool.clone());
    worker.lease(LEASE).concurrency(CONCURRENCY).start().await
}
