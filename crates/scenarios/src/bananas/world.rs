//! The scenarios without kills: clients submit, workers run and schedulers move jobs, all of them as processes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use redis::{Commands, Connection};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::judge::{self, Report, Submitted, records, standing};
use super::orders::{ROUTES, closing_time};
use super::{BananasError, Plan, Scenario};
use meshwork_test_servers::Kept;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

/// Timeout of a whole scenario.
const END: Duration = Duration::from_secs(900);
/// Slots of a Meshwork worker, and goroutines of a Bananas worker, where there are several.
const SLOTS: usize = 8;

/// A server, the directory of the records, and the processes.
pub(super) struct Ground<'a> {
    pub(super) plan: &'a Plan,
    pub(super) server: RealServer,
    pub(super) dir: TempDir,
}

impl<'a> Ground<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, BananasError> {
        // A server ends blocked calls at its own tick, and the workers of Bananas block for a millisecond.
        let server = RealServer::redis().args(&["--hz", "500"]);
        let server = server.start_for("bananas");
        let dir = tempfile::Builder::new().prefix("mw-bananas-").tempdir();
        Ok(Self {
            plan,
            server: server.ok_or(BananasError::Missing("redis-server"))?,
            dir: dir.map_err(BananasError::io("a temporary directory"))?,
        })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn redis(&self) -> Result<Connection, BananasError> {
        Ok(redis::Client::open(self.server.url())?.get_connection()?)
    }

    /// Starts a process of one of the test kit's roles.
    pub(super) fn start(
        &self,
        role: &str,
        name: &str,
        make: ClientVariant,
        rest: &[&str],
    ) -> Result<Kept, BananasError> {
        let mut command = Command::new(&self.plan.bananas);
        command
            .arg(role)
            .args(["--url", &self.server.url(), "--name", name])
            .args(["--make", make.as_str()])
            .arg("--dir")
            .arg(self.dir())
            .args(rest)
            .stdin(Stdio::null());
        let child = command.spawn().map_err(BananasError::io(role))?;
        Ok(Kept(child))
    }

    /// Starts the client with this number.
    pub(super) fn client(
        &self,
        role: &str,
        number: usize,
        make: ClientVariant,
        jobs: u64,
        rest: &[&str],
    ) -> Result<Kept, BananasError> {
        let (name, number, jobs) = (
            format!("{role}-{number}"),
            number.to_string(),
            jobs.to_string(),
        );
        let batch = [&["--client", &number, "--jobs", &jobs][..], rest].concat();
        self.start(role, &name, make, &batch)
    }
}

/// Asks a Meshwork process to shut down, and waits for its end.
pub(super) fn stop(process: &mut Kept) -> Result<ExitStatus, BananasError> {
    let pid = Pid::from_child(&process.0);
    kill_process(pid, Signal::TERM).map_err(|error| BananasError::io("SIGTERM")(error.into()))?;
    process.0.wait().map_err(BananasError::io("a process"))
}

/// The processes of a scenario.
struct Cast {
    clients: Vec<Kept>,
    ours: Vec<Kept>,
    theirs: Vec<Kept>,
}

impl Cast {
    fn of(
        ground: &Ground<'_>,
        scenario: Scenario,
    ) -> Result<(Self, Vec<ClientVariant>), BananasError> {
        let all = ROUTES.join(",");
        let ours = |number: usize, make: ClientVariant, routes: &str, slots: usize| {
            let slots = slots.to_string();
            let rest = ["--routes", routes, "--slots", &slots];
            ground.start("our-worker", &format!("ours-{number}"), make, &rest)
        };
        let theirs = |make: ClientVariant, slots: usize| {
            let slots = slots.to_string();
            let rest = ["--routes", &all, "--slots", &slots];
            ground.start("worker", &format!("theirs-{make}"), make, &rest)
        };
        let scheduler = |make: ClientVariant| ground.start("scheduler", "scheduler", make, &[]);
        let (workers, makes) = match scenario {
            Scenario::TheirWorker => {
                // A scheduler of Bananas would push due jobs to another route, so the Meshwork worker is here only as
                // a scheduler.
                let ours = vec![ours(0, ClientVariant::GoRouted, "nobody", 1)?];
                let theirs = vec![theirs(ClientVariant::GoRouted, 1)?];
                ((ours, theirs), vec![ClientVariant::GoRouted])
            }
            Scenario::Both => {
                // No scheduler of Bananas: a job that it pushes twice would run twice in Bananas.
                let ours = vec![
                    ours(0, ClientVariant::Go, &all, SLOTS)?,
                    ours(1, ClientVariant::Go, &all, SLOTS)?,
                ];
                let theirs = vec![
                    theirs(ClientVariant::Go, SLOTS)?,
                    theirs(ClientVariant::GoRouted, SLOTS)?,
                ];
                (
                    (ours, theirs),
                    [&ClientVariant::ALL[..], &ClientVariant::ALL[..]].concat(),
                )
            }
            _ => {
                let ours = vec![ours(0, ClientVariant::Go, &all, 1)?];
                (
                    (ours, vec![scheduler(ClientVariant::Go)?]),
                    ClientVariant::ALL.to_vec(),
                )
            }
        };
        let share = ground.plan.jobs / makes.len() as u64;
        let mut clients = Vec::new();
        for (number, make) in makes.iter().enumerate() {
            let role = match scenario {
                Scenario::TheirWorker => "our-client",
                Scenario::Both if number >= ClientVariant::ALL.len() => "our-client",
                _ => "client",
            };
            clients.push(ground.client(role, number, *make, share, &[])?);
        }
        let (ours, theirs) = workers;
        let cast = Self {
            clients,
            ours,
            theirs,
        };
        Ok((cast, makes))
    }

    /// Removes the clients that have ended well. Fails if another process has ended, or a client with an error.
    fn look(&mut self) -> Result<(), BananasError> {
        for worker in self.ours.iter_mut().chain(&mut self.theirs) {
            if let Some(status) = ended(worker)? {
                return Err(BananasError::Odd(format!(
                    "a worker or scheduler ended: {status}"
                )));
            }
        }
        let mut going = Vec::new();
        for mut client in self.clients.drain(..) {
            match ended(&mut client)? {
                None => going.push(client),
                Some(status) if status.success() => {}
                Some(status) => return Err(BananasError::Odd(format!("a client ended: {status}"))),
            }
        }
        self.clients = going;
        Ok(())
    }
}

pub(super) fn ended(process: &mut Kept) -> Result<Option<ExitStatus>, BananasError> {
    process.0.try_wait().map_err(BananasError::io("a process"))
}

/// Plays one scenario.
pub(super) async fn play(plan: &Plan, scenario: Scenario) -> Result<Report, BananasError> {
    let ground = Ground::new(plan)?;
    let (mut cast, makes) = Cast::of(&ground, scenario)?;
    let mut redis = ground.redis()?;
    eventually(scenario.name(), END, async || {
        match through(&ground, &mut cast, &mut redis) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    })
    .await?;
    for worker in &mut cast.ours {
        let status = stop(worker)?;
        if !status.success() {
            return Err(BananasError::Odd(format!("ours ended with {status}")));
        }
    }
    fs::write(closing_time(ground.dir()), "").map_err(BananasError::io("closing time"))?;
    for process in &mut cast.theirs {
        process.0.wait().map_err(BananasError::io("a process"))?;
    }
    let single = scenario != Scenario::Both;
    judge::count(
        scenario.name(),
        ground.dir(),
        &mut redis,
        &makes,
        single,
        &HashMap::new(),
    )
}

/// Returns a value when all clients have ended and no job waits or runs.
fn through(
    ground: &Ground<'_>,
    cast: &mut Cast,
    redis: &mut Connection,
) -> Result<bool, BananasError> {
    cast.look()?;
    // A search for all keys would block the server.
    let known = ["scheduled", "processing", "high", "normal", "low"];
    let known = known.map(|name| format!("bananas:queue:{name}"));
    if !cast.clients.is_empty() || redis.exists(&known)? || !standing(redis)?.is_empty() {
        return Ok(false);
    }
    // The workers of Bananas remove a job from the running ones before they write that it is done.
    let jobs = Submitted::read(ground.dir())?;
    let records = records(redis, &jobs)?;
    Ok(records
        .values()
        .all(|record| record.contains("\"completed\"")))
}
