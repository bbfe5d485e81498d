//! The play: a server, the workers, the calls, the kills, and the check of the remaining keys.

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

/// Timeout of the end. The registration of a worker at a list that is gone lasts for half a minute.
const END: Duration = Duration::from_secs(180);

/// Plays on a server of its own.
///
/// # Errors
/// A program is missing or does something that it never should. Lost calls are no error: the report lists them.
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
    eventually("no message is in flight", END, async || {
        match registered(&mut redis, plan.dialect) {
            // A stream does not list a consumer that has received nothing for long.
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

/// Kills workers at moments that are spread over all calls. Each kill has its own call, whose handler blocks until
/// the kill. The kill also hits all other actions of that worker, in any state.
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

/// Returns the number of workers that are registered at the queues.
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

/// Returns the keys without a time to live, except empty streams; streams with the number of their entries.
async fn left(redis: &mut Connection) -> Result<Vec<String>, ActionsError> {
    // The client that has ended removes its list in a task of its own.
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
