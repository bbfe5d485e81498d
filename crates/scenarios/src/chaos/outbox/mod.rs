//! Jobs of transactions in PostgreSQL or SQLite: half of the transactions are rolled back, relays move the rows of the
//! others to a redis-server, and workers apply the effect of each job in the database. Relays, workers, the redis-server, the
//! PostgreSQL and single connections of it are killed meanwhile.
//!
//! In the end each committed transaction has one job and one effect, and no other one has any.

mod cast;
mod database;
mod report;
mod transactions;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use meshwork::Client;
use meshwork_outbox::Outbox;
use meshwork_outbox::sqlx::{Pool, Postgres, Sqlite};
use meshwork_test_servers::servers::{RealPostgres, RealServer, Tool};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ChaosError;
use super::hostile::failed;
use cast::{Cast, Server, VICTIMS};
pub use database::Kind;
use database::Scene;
pub use report::Report;
use transactions::Transactions;
pub use worker::be_worker;

/// Longest pause before a kill.
const SOON: Duration = Duration::from_millis(200);
/// Longest time without progress.
const END: Duration = Duration::from_secs(60);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for a connection to the database.
const ACQUIRE: Duration = Duration::from_secs(2);

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Kind of the database.
    pub database: Kind,
    /// Program and arguments of a worker of this scenario, which runs [`be_worker`].
    pub worker: (PathBuf, Vec<String>),
    /// Number of transactions.
    pub transactions: usize,
    /// Number of kills.
    pub kills: u32,
    /// Seed for the choice of moments, victims and transactions. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

/// Plays until each job has ended.
///
/// # Errors
/// There is no redis-server or PostgreSQL, a process ends by itself, or nothing goes on for a minute.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-o-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    match plan.database {
        Kind::Postgres => {
            let server = RealPostgres::start_for("chaos");
            let server = server.ok_or(ChaosError::Missing(Tool::Postgres.program()))?;
            let pool = connections::<Postgres>(&server.url())?;
            let server = Server::Postgres(server, pool.clone());
            play_on(plan, dir.path(), server, &pool).await
        }
        Kind::Sqlite => {
            let file = dir.path().join("app.db");
            std::fs::write(&file, "").map_err(ChaosError::io("a file of SQLite"))?;
            let url = format!("sqlite://{}", file.display());
            let pool = connections::<Sqlite>(&url)?;
            play_on(plan, dir.path(), Server::Sqlite(url), &pool).await
        }
    }
}

fn connections<D: Scene>(url: &str) -> Result<Pool<D>, ChaosError> {
    D::connections(url, transactions::AT_ONCE + 2).map_err(|it| failed(&it))
}

async fn play_on<D: Scene>(
    plan: &Plan,
    dir: &Path,
    database: Server,
    pool: &Pool<D>,
) -> Result<Report, ChaosError> {
    let began = Instant::now();
    let redis = RealServer::redis().append_only().start_for("chaos");
    let redis = redis.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
    let outbox = Outbox::new();
    outbox.migrate(pool).await.map_err(|it| failed(&it))?;
    D::create_tables(pool).await.map_err(|it| failed(&it))?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let transactions = Arc::new(Transactions::new(plan, pool.clone(), outbox.clone()));
    let mut cast = Cast::start(plan, dir, redis, database).await?;
    let running = Arc::clone(&transactions).start();
    let mut kills = [0; VICTIMS];
    let mut looks = tokio::time::interval(LOOK);
    let mut until = Instant::now() + END;
    for due in 0..plan.kills {
        // Transactions wait for the kills, so that the kills are spread over all of them.
        transactions.allow(due + 1, plan.kills.max(1));
        while !transactions.are_mostly_done() {
            looks.tick().await;
            cast.are_there()?;
            in_time(until)?;
        }
        until = Instant::now() + END;
        tokio::time::timeout(SOON.mul_f64(random.random()), cast.ends())
            .await
            .map_or(Ok(()), Err)?;
        kills[cast.kill(due, &mut random).await?] += 1;
        if (due + 1).is_multiple_of(10) {
            (plan.progress)(&format!(
                "{}: {} kills, {} transactions",
                plan.database.name(),
                due + 1,
                transactions.done()
            ));
        }
    }
    transactions.allow(1, 1);
    running.await.map_err(|it| failed(&it))??;
    let client = Client::open(&cast.redis_url())
        .await
        .map_err(|it| failed(&it))?;
    let (mut effects, mut until) = (0, Instant::now() + END);
    while Instant::now() < until {
        looks.tick().await;
        cast.are_there()?;
        // After the last kill the database may still be starting.
        let Ok((waiting, seen)) = progress(pool, &outbox).await else {
            continue;
        };
        if waiting == 0 && report::open_jobs(&client).await? == 0 {
            break;
        }
        if seen > effects {
            (effects, until) = (seen, Instant::now() + END);
        }
    }
    let mut report = Report::new(plan, kills);
    report.judge(&transactions, pool, &outbox, &client).await?;
    cast.stop().await?;
    report.seconds = began.elapsed().as_secs();
    Ok(report)
}

/// Returns the numbers of rows that wait and of effects.
async fn progress<D: Scene>(pool: &Pool<D>, outbox: &Outbox) -> Result<(u64, usize), ChaosError> {
    let backlog = outbox.backlog(pool).await.map_err(|it| failed(&it))?;
    Ok((backlog.waiting, report::count(pool, "effects").await?))
}

fn in_time(until: Instant) -> Result<(), ChaosError> {
    match Instant::now() < until {
        true => Ok(()),
        false => Err(ChaosError::Line("the transactions do not go on".to_owned())),
    }
}
