//! The play: a server, the workers, the calls, the kills, and what is there in the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use meshwork_model::keys::nooble::Dialect;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis::{Commands, Connection};

use super::asks::{Asks, Outcomes};
use super::call::SERVICES;
use super::judge::{Report, count};
use super::troop::Troop;
use super::wire::Wire;
use super::work::client;
use super::{ActionsError, Plan};
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

/// How long the last things may take to end: a worker of a list that is gone is looked after for half a minute.
const END: Duration = Duration::from_secs(180);

/// Plays it on a server of its own.
///
/// # Errors
/// When a program is missing or does what it never should. That calls were lost is no error but a report.
pub async fn play(plan: &Plan) -> Result<Report, ActionsError> {
    let server = RealServer::redis().append_only().start_for("actions");
    let server = server.ok_or(ActionsError::Missing("redis-server"))?;
    let dir = tempfile::Builder::new().prefix("mw-actions-").tempdir();
    let dir = dir.map_err(ActionsError::io("a temporary directory"))?;
    let mut troop = Troop::start(plan, server.url(), dir.path()).await?;
    let wire = Wire::listen(&server)?;
    let began = Instant::now();
    let asks = Asks::new(client(&server.url(), plan.dialect, "caller").await?);
    let most = plan.calls.saturating_sub(plan.kills);
    let calls = tokio::spawn(Arc::clone(&asks).all(most));
    let mut outcomes = kill(plan, &asks, most, &mut troop).await?;
    let calls = calls.await;
    outcomes.extend(calls.map_err(|why| ActionsError::Odd(why.to_string()))??);
    let took = began.elapsed();
    let mut redis = redis::Client::open(server.url())?.get_connection()?;
    let serving = troop.serving();
    eventually("all that was in hand is over", END, async || {
        match registered(&mut redis, plan.dialect) {
            // A stream knows nothing of one to whom it gave nothing for long.
            Ok(workers) => (workers <= serving).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    })
    .await?;
    troop.stop().await?;
    drop(asks);
    let left = left(&mut redis).await?;
    let answers = wire.end(&server)?;
    let report = count(plan, dir.path(), &outcomes, &answers, &troop.killed, left)?;
    Ok(Report {
        seconds: took.as_secs_f64(),
        ..report
    })
}

/// Kills workers, spread over all calls. Each kill has a call of its own, whose handler holds on until it comes; all
/// else that the worker has in hand, at whatever point it is, is hit with it.
async fn kill(
    plan: &Plan,
    asks: &Arc<Asks>,
    calls: usize,
    troop: &mut Troop,
) -> Result<Outcomes, ActionsError> {
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut held = Vec::new();
    for kill in 0..plan.kills {
        asks.answered(calls * kill / plan.kills).await;
        let service = SERVICES[random.random_range(0..SERVICES.len())];
        let (asks, number) = (Arc::clone(asks), calls + kill);
        let call = async move { asks.one(&format!("{service}.hold"), number).await };
        held.push((number, tokio::spawn(call)));
        troop.kill_holder(number).await?;
    }
    let mut outcomes = Outcomes::new();
    for (number, call) in held {
        let outcome = call.await;
        let outcome = outcome.map_err(|why| ActionsError::Odd(why.to_string()))?;
        outcomes.insert(number, outcome);
    }
    Ok(outcomes)
}

/// How many workers the queues know of.
fn registered(redis: &mut Connection, dialect: Dialect) -> Result<usize, ActionsError> {
    let mut workers = 0;
    for service in SERVICES {
        workers += match dialect {
            Dialect::Lists => {
                let many: usize =
                    redis.zcard(format!("nooble4:dev:{service}:actions:mw:workers"))?;
                many
            }
            Dialect::Streams => {
                let mut cmd = redis::cmd("XINFO");
                cmd.arg("CONSUMERS")
                    .arg(format!("nooble4:dev:{service}:streams:main"))
                    .arg(format!("{service}-group"));
                cmd.query::<Vec<redis::Value>>(redis)?.len()
            }
        };
    }
    Ok(workers)
}

/// Keys that stay for ever, but for streams in which nothing is; and how many entries are in those where something is.
async fn left(redis: &mut Connection) -> Result<Vec<String>, ActionsError> {
    // The client that is gone says so in a task of its own.
    let gone = |keys: &[String]| keys.iter().all(|key| !key.contains(":caller:responses:"));
    let keys = eventually("the client's list is gone", END, async || {
        let keys: redis::RedisResult<Vec<String>> = redis.keys("*");
        match keys {
            Ok(keys) => gone(&keys).then_some(Ok(keys)),
            Err(error) => Some(Err(error)),
        }
    });
    let mut left = Vec::new();
    for key in keys.await? {
        let life: i64 = redis.pttl(&key)?;
        let is_queue = key.ends_with(":streams:main");
        let entries: usize = match is_queue {
            true => redis::cmd("XLEN").arg(&key).query(redis)?,
            false => 0,
        };
        if entries > 0 || (life == -1 && !is_queue) {
            left.push(format!("{key} ({entries} entries)"));
        }
    }
    Ok(left)
}
