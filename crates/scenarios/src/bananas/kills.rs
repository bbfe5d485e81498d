//! Scenarios in which the `meshwork` command runs jobs of Bananas and is killed or stopped, or the jobs exceed their
//! timeout. The first run of each job blocks until it is ended from outside. Each later run ends at once.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use redis::Connection;

use super::judge::{self, Report, Submitted, records, standing};
use super::orders::Account;
use super::world::{Ground, ended, stop};
use super::{BananasError, Plan, Scenario};
use meshwork_test_servers::Kept;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{Tool, find};

/// Number of jobs at once.
const SLOTS: u64 = 4;
/// Number of jobs that can exceed their timeout at once.
const OVERDUE_SLOTS: u64 = 20;
/// Timeout of a job that exceeds it: long enough to start an interpreter on a busy machine.
const JOB_TIMEOUT: &str = "4s";
/// Timeout of one step.
const STEP: Duration = Duration::from_secs(120);

/// Plays one scenario.
pub(super) async fn play(plan: &Plan, scenario: Scenario) -> Result<Report, BananasError> {
    let world = World::new(plan, scenario)?;
    let mut redis = world.ground.redis()?;
    let jobs = match scenario {
        Scenario::Timeout => plan.kills,
        _ => plan.kills * SLOTS,
    };
    let mut client =
        world
            .ground
            .client("client", 0, ClientVariant::Go, jobs, &["--only", "hold"])?;
    let status = client.0.wait().map_err(BananasError::io("a client"))?;
    if !status.success() {
        return Err(BananasError::Odd(format!("a client ended: {status}")));
    }
    let mut toll = Toll::default();
    if scenario != Scenario::Timeout {
        for kill in 1..=plan.kills {
            world.kill(kill, &mut redis, &mut toll).await?;
        }
    }
    let mut last = world.worker()?;
    eventually("all jobs end", STEP * 4, async || {
        match world.through(&mut last, &mut redis) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    })
    .await?;
    stop(&mut last)?;
    if scenario == Scenario::Timeout {
        let jobs = Submitted::read(world.ground.dir())?;
        toll.extra = jobs.into_iter().map(|job| (job.id, 1)).collect();
    }
    let (name, dir) = (scenario.name(), world.ground.dir());
    let mut report = judge::count(
        name,
        dir,
        &mut redis,
        &[ClientVariant::Go],
        false,
        &toll.extra,
    )?;
    report.kills = usize::try_from(plan.kills).unwrap_or(usize::MAX);
    world.failures(&mut redis, &mut report)?;
    Ok(report)
}

struct World<'a> {
    ground: Ground<'a>,
    scenario: Scenario,
    python: PathBuf,
    handler: PathBuf,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, scenario: Scenario) -> Result<Self, BananasError> {
        let ground = Ground::new(plan)?;
        let handler = ground.dir().join("hold.py");
        let said = fs::write(&handler, script(&ground));
        said.map_err(BananasError::io("a handler"))?;
        Ok(Self {
            python: find(Tool::Python).ok_or(BananasError::Missing("python3"))?,
            ground,
            scenario,
            handler,
        })
    }

    /// Starts the command as a user does.
    fn worker(&self) -> Result<Kept, BananasError> {
        let said = File::options()
            .append(true)
            .create(true)
            .open(self.ground.dir().join("worker.err"));
        let slots = match self.scenario {
            Scenario::Timeout => OVERDUE_SLOTS,
            _ => SLOTS,
        };
        let mut command = Command::new(&self.ground.plan.meshwork);
        command
            .current_dir(self.ground.dir())
            .env("REDIS_URL", self.ground.server.url())
            .env("HOME", self.ground.dir())
            .env("MESHWORK_PYTHON", &self.python)
            .args([
                "worker",
                "--protocol",
                "bananas",
                "--lease",
                "1",
                "--shutdown-timeout",
                "0",
            ])
            .args(["--concurrency", &slots.to_string()])
            .arg("--handler")
            .arg(format!("hold={}", self.handler.display()))
            .stdin(Stdio::null())
            .stderr(said.map_err(BananasError::io("what the worker says"))?);
        if self.scenario == Scenario::Timeout {
            command.args(["--job-timeout", JOB_TIMEOUT]);
        }
        Ok(Kept(
            command.spawn().map_err(BananasError::io("the command"))?,
        ))
    }

    /// Starts a worker, and kills or stops it when blocked jobs take all its slots.
    async fn kill(
        &self,
        kill: u64,
        redis: &mut Connection,
        toll: &mut Toll,
    ) -> Result<(), BananasError> {
        let mut worker = self.worker()?;
        let holding = usize::try_from(kill * SLOTS).unwrap_or(usize::MAX);
        eventually("jobs hold on", STEP, async || {
            match self.holds(&mut worker, holding) {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })
        .await?;
        if self.scenario == Scenario::Stop {
            let status = stop(&mut worker)?;
            if !status.success() {
                return Err(BananasError::Odd(format!("the worker ended with {status}")));
            }
        }
        drop(worker);
        let (jobs, begun) = (
            Submitted::read(self.ground.dir())?,
            begun(self.ground.dir())?,
        );
        for (id, record) in records(redis, &jobs)? {
            // A job that has begun since the last kill, and is not done, has to begin again.
            let began = begun.get(&id).copied().unwrap_or_default();
            let before = toll.seen.insert(id.clone(), began).unwrap_or_default();
            if began > before && !record.contains("\"completed\"") {
                *toll.extra.entry(id).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Returns true if this many jobs have blocked so far.
    fn holds(&self, worker: &mut Kept, so_many: usize) -> Result<bool, BananasError> {
        self.lives(worker)?;
        let dir = fs::read_dir(self.ground.dir()).map_err(BananasError::io("the account"))?;
        let held = dir
            .flatten()
            .filter(|file| file.path().extension().is_some_and(|it| it == "held"));
        Ok(held.count() >= so_many)
    }

    fn lives(&self, worker: &mut Kept) -> Result<(), BananasError> {
        let Some(status) = ended(worker)? else {
            return Ok(());
        };
        let said = fs::read_to_string(self.ground.dir().join("worker.err")).unwrap_or_default();
        Err(BananasError::Odd(format!(
            "the worker ended with {status}; it said:\n{said}"
        )))
    }

    fn through(&self, worker: &mut Kept, redis: &mut Connection) -> Result<bool, BananasError> {
        self.lives(worker)?;
        Ok(standing(redis)?.is_empty())
    }

    /// Checks the failures of the jobs: no kill counts as one; a run beyond its timeout does.
    fn failures(&self, redis: &mut Connection, report: &mut Report) -> Result<(), BananasError> {
        let jobs = Submitted::read(self.ground.dir())?;
        let failures = u8::from(self.scenario == Scenario::Timeout);
        for (id, record) in records(redis, &jobs)? {
            if !record.contains(&format!("\"attempts\":{failures},")) {
                report.miscounted.push(format!("{id}: {record}"));
            }
        }
        Ok(())
    }
}

/// Starts that kills cause, by job.
#[derive(Default)]
struct Toll {
    /// Number of starts up to the last kill.
    seen: HashMap<String, usize>,
    /// Number of starts that kills made necessary.
    extra: HashMap<String, usize>,
}

/// Returns the number of starts of each job.
fn begun(dir: &Path) -> Result<HashMap<String, usize>, BananasError> {
    let mut begun = HashMap::new();
    for line in Account::Starts.read(dir)? {
        let id = line.split(' ').next().unwrap_or_default();
        *begun.entry(id.to_owned()).or_default() += 1;
    }
    Ok(begun)
}

/// Returns the script, which records its start. The first run of each job leaves a mark and blocks.
fn script(ground: &Ground<'_>) -> String {
    let dir = ground.dir().display().to_string();
    format!(
        "import os, signal\n\
         tally = os.open({dir:?} + '/starts', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)\n\
         os.write(tally, f'{{JOB_ID}} ours-command\\n'.encode())\n\
         try:\n\
         \x20   os.close(os.open(f'{{{dir:?}}}/{{JOB_ID}}.held', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))\n\
         \x20   while True: signal.pause()\n\
         except FileExistsError:\n\
         \x20   result = JOB_ID\n"
    )
}
