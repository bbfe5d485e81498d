//! The scenario in which jobs are imported and exported while all participants go on. Clients of Bananas submit;
//! workers of both systems run the jobs of Bananas. Another Meshwork worker runs the imported jobs. The command that
//! moves jobs is killed half-way.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use meshwork_model::keys::hero::JobKeys;
use redis::{Commands, Connection};

use super::judge::{self, Report, Submitted, records, standing};
use super::orders::{ROUTES, closing_time};
use super::world::{Ground, ended, stop};
use super::{BananasError, Plan};
use meshwork_test_servers::Kept;
use meshwork_test_servers::eventually;

/// Timeout of one step.
const STEP: Duration = Duration::from_secs(300);
/// Slots of each worker: few, so that there are waiting jobs to move.
const SLOTS: &str = "2";

/// Plays the scenario.
pub(super) async fn play(plan: &Plan) -> Result<Report, BananasError> {
    let ground = Ground::new(plan)?;
    let mut redis = ground.redis()?;
    let routes = ROUTES.join(",");
    let rest = ["--routes", &routes, "--slots", SLOTS];
    // Only Meshwork's schedulers run: a scheduler of Bananas pushes each job that it has read, even if the job has
    // moved since.
    let mut ours = vec![
        ground.start("our-worker", "ours", ClientVariant::Go, &rest)?,
        ground.start("over-worker", "ours-over", ClientVariant::Go, &rest)?,
    ];
    let mut theirs = ground.start("worker", "theirs", ClientVariant::Go, &rest)?;
    let mut clients = Vec::new();
    let share = plan.jobs / ClientVariant::ALL.len() as u64;
    for (number, make) in ClientVariant::ALL.into_iter().enumerate() {
        clients.push(ground.client("client", number, make, share, &[])?);
    }
    let mut kills = 0;
    for round in 0..plan.kills * 2 {
        kills += usize::from(kill_half_way(&ground, &mut redis, round % 2 == 1).await?);
    }
    eventually("clients end", STEP, async || through(&mut clients)).await?;
    // A complete import must succeed after all the killed ones.
    let status = mover(&ground, false)?.0.wait();
    let status = status.map_err(BananasError::io("migrate"))?;
    if status.code().is_none_or(|code| code > 1) {
        return Err(BananasError::Odd(format!("migrate ended with {status}")));
    }
    eventually("all jobs end", STEP, async || {
        done(&ground, &mut redis).transpose()
    })
    .await?;
    for worker in &mut ours {
        stop(worker)?;
    }
    fs::write(closing_time(ground.dir()), "").map_err(BananasError::io("closing time"))?;
    theirs.0.wait().map_err(BananasError::io("a process"))?;
    let none = HashMap::new();
    let mut report = judge::count(
        "over",
        ground.dir(),
        &mut redis,
        &ClientVariant::ALL,
        false,
        &none,
    )?;
    report.kills = kills;
    Ok(report)
}

/// Starts the command as a user does.
fn mover(ground: &Ground<'_>, back: bool) -> Result<Kept, BananasError> {
    let mut command = Command::new(&ground.plan.meshwork);
    command
        .env("REDIS_URL", ground.server.url())
        .env("HOME", ground.dir())
        .args(["migrate", "bananas"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match back {
        true => command.arg("--back"),
        false => command.args(["--function", "work", "--function", "flaky", "--overdue"]),
    };
    let child = command.spawn().map_err(BananasError::io("migrate"))?;
    Ok(Kept(child))
}

/// Moves jobs, and kills the command when the first jobs have moved. Returns true if the command had not ended
/// before.
async fn kill_half_way(
    ground: &Ground<'_>,
    redis: &mut Connection,
    back: bool,
) -> Result<bool, BananasError> {
    let before = moves(redis)?;
    let mut mover = mover(ground, back)?;
    let ended = eventually("jobs move", STEP, async || {
        match half_way(&mut mover, redis, before) {
            Ok(None) => None,
            Ok(Some(ended)) => Some(Ok(ended)),
            Err(error) => Some(Err(error)),
        }
    });
    Ok(!ended.await?)
    // Dropped, it is killed.
}

/// Returns, once the command has ended or moved a job, whether it has ended.
fn half_way(
    mover: &mut Kept,
    redis: &mut Connection,
    before: u64,
) -> Result<Option<bool>, BananasError> {
    if let Some(status) = ended(mover)? {
        return match status.code() {
            Some(0 | 1) => Ok(Some(true)),
            _ => Err(BananasError::Odd(format!("migrate ended with {status}"))),
        };
    }
    Ok((moves(redis)? != before).then_some(false))
}

/// Returns the number of moves so far in both directions, from the events.
fn moves(redis: &mut Connection) -> Result<u64, BananasError> {
    let script = "local n = 0 for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do \
                  if e[2][4] == 'import' or e[2][4] == 'export' then n = n + 1 end end return n";
    let events = JobKeys::default().events();
    Ok(redis::cmd("EVAL")
        .arg(script)
        .arg(1)
        .arg(events)
        .query(redis)?)
}

/// Returns a value when all clients have ended.
fn through(clients: &mut Vec<Kept>) -> Option<Result<(), BananasError>> {
    let mut going = Vec::new();
    for mut client in clients.drain(..) {
        match ended(&mut client) {
            Ok(None) => going.push(client),
            Ok(Some(status)) if ExitStatus::success(&status) => {}
            Ok(Some(status)) => {
                let what = format!("a client ended: {status}");
                return Some(Err(BananasError::Odd(what)));
            }
            Err(error) => return Some(Err(error)),
        }
    }
    *clients = going;
    clients.is_empty().then_some(Ok(()))
}

/// Returns a value when no job waits or runs.
fn done(ground: &Ground<'_>, redis: &mut Connection) -> Result<Option<()>, BananasError> {
    let known = ["scheduled", "processing", "high", "normal", "low"];
    let known = known.map(|name| format!("bananas:queue:{name}"));
    if redis.exists(&known)? || !standing(redis)?.is_empty() {
        return Ok(None);
    }
    let jobs = Submitted::read(ground.dir())?;
    let records = records(redis, &jobs)?;
    let all = records
        .values()
        .all(|record| record.contains("\"completed\""));
    Ok(all.then_some(()))
}
