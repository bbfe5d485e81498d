//! The play: a migration from its first phase to its end, with old and new programs at work.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use meshwork::Client;
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use redis::Commands;
use tempfile::TempDir;

use super::client::{Batch, fields};
use super::judge::Report;
use super::keeper::{BATCH, Programs, Role, keep, ours};
use super::orders::{Account, Orders};
use super::{LegacyError, OldList, Plan, TARGET, TYPE};
use meshwork_test_servers::Kept;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealServer, Tool, find};

/// Number of old workers.
const WORKERS: u64 = 4;
/// Number of old clients.
const CLIENTS: u64 = 3;
/// Phases in which a part of the jobs is submitted: before, dual, canonical, after.
const PHASES: u64 = 4;
/// The phase before the last: old workers have ended, old clients have not.
const WIDOWS: u64 = 3;
/// The last phase: old workers and clients have ended.
const AFTER: u64 = 4;
/// Canonical lists from which no Meshwork worker takes, of the migrating type and of another one. The jobs of the
/// last have no type.
const TARGETED: [&str; 4] = [
    "python:group:io",
    "python:group:io:inst:7",
    "python:group:io:prio:0",
    "sal",
];
/// One in this many jobs of a phase goes to each of these lists.
const TARGETED_EACH: u64 = 20;
/// Number of jobs of each client in the phase without old workers.
const OF_WIDOW: u64 = 8;
/// Ids of old workers, which also name the type, as in Hero. The migration knows the list of the first one only, and
/// Meshwork takes over no list of the second.
const WORKER_IDS: [&str; 2] = ["python_runner_1", "python_runner_2"];
/// An old client waits for one job in this many, for a second. Old workers never reply, since a list on which a
/// client waits does not exist.
const WAITED_FOR: u64 = 50;
/// Timeout of a client that will receive a reply, in seconds.
const PATIENCE: u64 = 30;
/// Timeout of a job, in seconds: long enough to start an interpreter on a busy machine.
const TIMEOUT: u64 = 5;
/// Age of the migration, in seconds: far longer than a live old worker takes from BLPOP to HSET.
const AGE: &str = "1.5";
/// Timeout after the last job: several times the duration of a job whose worker was killed.
const END: Duration = Duration::from_secs(120);
/// Number of jobs that Meshwork's client submits at once.
const AT_ONCE: usize = 20;

/// Plays one scenario.
///
/// # Errors
/// A program is missing or does something that it never should. Lost jobs are no error: the report lists them.
pub async fn play(plan: &Plan, list: OldList) -> Result<Report, LegacyError> {
    let world = World::new(plan, list)?;
    let (one, two) = (world.ours()?, world.command_worker()?);
    let old: Vec<_> = (0..WORKERS)
        .map(|number| world.old_worker(number))
        .collect();
    world.phase(0).await?;
    let setting = match list {
        OldList::Work => "{worker_id}",
        _ => WORKER_IDS[0],
    };
    let start = ["start", "--list", &list.key(setting), "--age", AGE];
    world.step(&start, 0)?;
    world.phase(1).await?;
    world.step(&["finish"], 1)?;
    world.step(&["canonical-first"], 0)?;
    world.phase(2).await?;
    // Old workers run, and the migration sees them.
    world.step(&["finish"], 1)?;
    let closing_time = Orders::closing_time(world.dir.path());
    fs::write(closing_time, "").map_err(LegacyError::io("the end of work"))?;
    for worker in old {
        joined(worker).await?;
    }
    let waited = world.widows().await?;
    // Jobs on canonical lists do not keep the migration from ending.
    world.finished().await?;
    let targeted = world.targets().await?;
    world.phase(AFTER).await?;
    let status = world.ended().await?;
    drop((one, two));
    Report::count(list, world.dir.path(), &status, &waited, &targeted)
}

struct World<'a> {
    plan: &'a Plan,
    list: OldList,
    programs: Programs,
    server: RealServer,
    dir: TempDir,
    python: std::path::PathBuf,
    script: String,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, list: OldList) -> Result<Self, LegacyError> {
        let python = find(Tool::Python).ok_or(LegacyError::Missing("python3"))?;
        let server = RealServer::redis().start_for("legacy");
        let server = server.ok_or(LegacyError::Missing("redis-server"))?;
        let dir = tempfile::Builder::new().prefix("mw-legacy-").tempdir();
        let dir = dir.map_err(LegacyError::io("a temporary directory"))?;
        let starts = dir.path().join(Account::Starts.name());
        let script = format!(
            "import os\n\
             tally = os.open({:?}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)\n\
             os.write(tally, f\"{{JOB_ID}} command\\n\".encode())\n\
             result = JOB_ID\n",
            starts.display().to_string()
        );
        Ok(Self {
            plan,
            list,
            programs: Programs {
                meshwork: plan.meshwork.clone(),
                legacy: plan.legacy.clone(),
            },
            server,
            dir,
            python,
            script,
        })
    }

    /// Returns arguments for the process with this number. Even numbers belong to the first old worker, odd ones to
    /// the second.
    fn orders(&self, name: String, number: u64, seed: u64) -> Orders {
        let worker_id = WORKER_IDS[usize::from(number % 2 == 1)];
        Orders {
            url: self.server.url(),
            list: self.list.key(worker_id),
            worker_id: worker_id.to_owned(),
            dir: self.dir.path().to_owned(),
            name,
            seed: self.plan.seed.wrapping_mul(1_000_003).wrapping_add(seed),
            deadly: self.plan.deadly,
        }
    }

    fn old_worker(&self, number: u64) -> JoinHandle<Result<u64, LegacyError>> {
        let orders = self.orders(format!("old-{number}"), number, 1000 * number);
        keep(&self.programs.legacy, orders, Role::Worker)
    }

    fn ours(&self) -> Result<Kept, LegacyError> {
        ours(&self.programs, &self.orders("ours".to_owned(), 0, 0))
    }

    fn meshwork(&self) -> Command {
        let mut command = Command::new(&self.programs.meshwork);
        command
            .current_dir(self.dir.path())
            .env("REDIS_URL", self.server.url())
            .env("HOME", self.dir.path())
            // Scripts count their runs in a file outside of their folder.
            .env("MESHWORK_SANDBOX", "open")
            .env("MESHWORK_PYTHON", &self.python);
        command
    }

    fn command_worker(&self) -> Result<Kept, LegacyError> {
        let mut command = self.meshwork();
        command.args(["worker", "--type", TYPE, "--concurrency", "1"]);
        let said = fs::File::create(self.dir.path().join("worker.err"));
        command.stderr(said.map_err(LegacyError::io("what the worker says"))?);
        let child = command.spawn();
        Ok(Kept(child.map_err(LegacyError::io("the command"))?))
    }

    /// Runs a step of the migration, which must end with `code`.
    fn step(&self, words: &[&str], code: i32) -> Result<(), LegacyError> {
        let mut command = self.meshwork();
        command.arg("migrate").args(words).args(["--type", TYPE]);
        let done = command.output().map_err(LegacyError::io("the command"))?;
        if done.status.code() == Some(code) {
            return Ok(());
        }
        Err(LegacyError::Step {
            command: words.join(" "),
            code: done.status.code(),
            said: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }

    /// Repeats the last step until no job is left in old lists.
    async fn finished(&self) -> Result<(), LegacyError> {
        let begun = Instant::now();
        let look = async || match self.step(&["finish"], 0) {
            Err(_) if begun.elapsed() < END => None,
            ended => Some(ended),
        };
        eventually("the migration is through", END * 2, look).await
    }

    /// Submits the jobs of one phase, from all kinds of clients at once.
    async fn phase(&self, phase: u64) -> Result<(), LegacyError> {
        let jobs = self.plan.jobs / PHASES;
        let of_old = if phase == AFTER { 0 } else { jobs / 2 };
        let rest = jobs - of_old;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let share = of_old / CLIENTS + u64::from(client < of_old % CLIENTS);
                let batch = self.batch(client, phase, share);
                let seed = 100_000 * (phase + 1) + 10_000 * client;
                let orders = self.orders(format!("client-{client}-{phase}"), client, seed);
                keep(&self.programs.legacy, orders, Role::Client(batch))
            })
            .collect();
        let canonical_only = self.canonical_only(self.batch(CLIENTS, phase, rest / 2));
        let ours = self.submit(CLIENTS + 1, phase, rest - rest / 2);
        let targeted = self.targeted(phase, jobs / TARGETED_EACH);
        let (canonical_only, ours, targeted) = tokio::join!(canonical_only, ours, targeted);
        canonical_only?;
        ours?;
        targeted?;
        for client in clients {
            joined(client).await?;
        }
        Ok(())
    }

    /// Runs old clients after the end of the old workers. One waits for its replies, which Meshwork sends. The list
    /// of the other one has no reader. Returns the jobs whose replies are awaited.
    async fn widows(&self) -> Result<Vec<String>, LegacyError> {
        let keep_one = |client: u64, wait_for_each: u64, wait: u64| {
            let batch = Batch {
                wait_for_each,
                wait,
                ..self.batch(client, WIDOWS, OF_WIDOW)
            };
            let name = format!("client-{client}-{WIDOWS}");
            let mut orders = self.orders(name, client, 0);
            orders.deadly = 0.0;
            keep(&self.programs.legacy, orders, Role::Client(batch))
        };
        let (waits, pushes) = (keep_one(0, 1, PATIENCE), keep_one(1, u64::MAX, 0));
        joined(waits).await?;
        joined(pushes).await?;
        let from = BATCH * WIDOWS;
        let ids = (from..from + OF_WIDOW).map(|number| Batch::id(0, number));
        Ok(ids.collect())
    }

    fn batch(&self, client: u64, phase: u64, jobs: u64) -> Batch {
        Batch {
            client,
            from: BATCH * phase,
            to: BATCH * phase + jobs,
            script_type: self.list.script_type(),
            timeout: TIMEOUT,
            script: self.script.clone(),
            wait_for_each: WAITED_FOR,
            wait: 1,
        }
    }

    /// Runs a client of a new Hero, which knows only the canonical queues.
    async fn canonical_only(&self, batch: Batch) -> Result<(), LegacyError> {
        let orders = self.orders("canonical".to_owned(), 0, 0);
        let submit = move || -> Result<(), LegacyError> {
            let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
            for number in batch.from..batch.to {
                let id = Batch::id(batch.client, number);
                let mut fields = fields(&id, "", &batch);
                fields.push(("script_type", TYPE.to_owned()));
                let () = redis.hset_multiple(format!("hero:job:{id}"), &fields)?;
                Account::Submitted.add(&orders.dir, &format!("{id} canonical"))?;
                let () = redis.lpush("hero:q:work:type:python", &id)?;
            }
            Ok(())
        };
        flat(tokio::task::spawn_blocking(submit).await)
    }

    /// Runs clients of a new Hero whose jobs are for a group, an instance, at a priority, or for another type.
    async fn targeted(&self, phase: u64, jobs: u64) -> Result<(), LegacyError> {
        if phase == AFTER {
            return Ok(());
        }
        for (at, list) in (0..).zip(TARGETED) {
            let batch = self.batch(CLIENTS + 2 + at, phase, jobs);
            let orders = self.orders(TARGET.to_owned(), 0, 0);
            let submit = move || -> Result<(), LegacyError> {
                let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
                for number in batch.from..batch.to {
                    let id = Batch::id(batch.client, number);
                    let mut fields = fields(&id, "", &batch);
                    fields.retain(|(name, _)| *name != "script_type");
                    if list.starts_with(TYPE) {
                        fields.push(("script_type", TYPE.to_owned()));
                    }
                    let () = redis.hset_multiple(format!("hero:job:{id}"), &fields)?;
                    Account::Submitted.add(&orders.dir, &format!("{id} {TARGET}"))?;
                    let () = redis.lpush(format!("hero:q:work:type:{list}"), &id)?;
                }
                Ok(())
            };
            flat(tokio::task::spawn_blocking(submit).await)?;
        }
        Ok(())
    }

    /// Starts the workers of these lists, which find all their jobs. Returns the ids of the jobs.
    async fn targets(&self) -> Result<Vec<String>, LegacyError> {
        let closing_time = Orders::closing_time(self.dir.path());
        let submitted = Account::Submitted.read(self.dir.path())?;
        let targeted = |line: &String| {
            let (id, client) = line.split_once(' ')?;
            (client == TARGET).then(|| id.to_owned())
        };
        let all = submitted.iter().filter_map(targeted).collect();
        fs::remove_file(&closing_time).map_err(LegacyError::io("the end of work"))?;
        let workers = TARGETED.map(|list| {
            let mut orders = self.orders(TARGET.to_owned(), 0, 0);
            orders.list = format!("hero:q:work:type:{list}");
            orders.deadly = 0.0;
            keep(&self.programs.legacy, orders, Role::Worker)
        });
        let ended = self.ended().await;
        fs::write(closing_time, "").map_err(LegacyError::io("the end of work"))?;
        for worker in workers {
            joined(worker).await?;
        }
        ended.map(|_| all)
    }

    /// Runs Meshwork's client. Where each worker has its own list, half of the jobs are for the old worker's name.
    async fn submit(&self, client: u64, phase: u64, jobs: u64) -> Result<(), LegacyError> {
        let ours = Client::open(&self.server.url()).await?;
        let mut all = Vec::new();
        for number in BATCH * phase..BATCH * phase + jobs {
            let id: JobId = Batch::id(client, number).parse()?;
            let mut route = Route::to(TYPE.parse()?);
            if self.list == OldList::Work && number % 2 == 0 {
                route.instance = Some(WORKER_IDS[0].parse()?);
            }
            let mut job = NewJob::new(id, route, self.script.clone());
            job.timeout = TIMEOUT;
            all.push(job);
        }
        for chunk in all.chunks(AT_ONCE) {
            ours.enqueue_built(chunk).await?;
            for job in chunk {
                Account::Submitted.add(self.dir.path(), &format!("{} new", job.id))?;
            }
        }
        Ok(())
    }

    /// Returns the status of all records when all jobs have ended, or at the timeout.
    async fn ended(&self) -> Result<HashMap<String, String>, LegacyError> {
        let submitted = Account::Submitted.read(self.dir.path())?;
        let ids = submitted.iter().filter_map(|line| line.split(' ').next());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        let mut redis = redis::Client::open(self.server.url())?.get_connection()?;
        let begun = Instant::now();
        let look = async || {
            let status = statuses(&mut redis, &ids);
            let over = |word: &String| word == "finished" || word == "error";
            let late = begun.elapsed() > END;
            let done = |all: &HashMap<String, String>| late || all.values().all(over);
            match status {
                Ok(all) => done(&all).then_some(Ok(all)),
                Err(error) => Some(Err(error)),
            }
        };
        eventually("all records were read", END * 2, look).await
    }
}

fn statuses(
    redis: &mut redis::Connection,
    ids: &[String],
) -> Result<HashMap<String, String>, LegacyError> {
    let mut pipe = redis::pipe();
    for id in ids {
        pipe.hget(format!("hero:job:{id}"), "status");
    }
    let words: Vec<Option<String>> = pipe.query(redis)?;
    let words = words.into_iter().map(Option::unwrap_or_default);
    Ok(ids.iter().cloned().zip(words).collect())
}

async fn joined(thread: JoinHandle<Result<u64, LegacyError>>) -> Result<(), LegacyError> {
    let joined = tokio::task::spawn_blocking(move || match thread.join() {
        Ok(ended) => ended.map(drop),
        Err(_) => Err(LegacyError::Ended("its keeper panicked".to_owned())),
    });
    flat(joined.await)
}

fn flat(
    joined: Result<Result<(), LegacyError>, tokio::task::JoinError>,
) -> Result<(), LegacyError> {
    joined.unwrap_or_else(|error| Err(LegacyError::Ended(error.to_string())))
}
