//! `cargo xtask chaos`: kills the real command at random moments, and checks the results.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use meshwork_scenarios::chaos::fleet::{self, Ground};
use meshwork_scenarios::chaos::{
    ChaosError, Plan, Scenario, flows, hostile, limits, mesh, messages, outbox, play, schedules,
    spread,
};
use meshwork_test_servers::binary::meshwork_binary;

/// Simulated time for the schedules, which takes a minute.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Kill workers, servers and engines at random moments, and check that no job is lost and none runs twice
/// without need
///
/// `alone`, `server` and `attached` run batches: `run` alone, with a worker on a redis-server, or on the
/// embedded engine with others attached. `fleet` is three workers on a redis-server, each with a clock that
/// is a minute off the next: kill -9 and SIGSTOP of workers, kill -9 and restart of the server, memory
/// full. `failover` has a replica and sentinels, and a client that waits for the replica; `unconfirmed` the
/// same with one that does not, whose loss is measured. `schedules` is three schedulers whose clocks differ by
/// a minute and a day that passes in one; the one that was busy last is killed. `limits` is three workers whose
/// queues have limits of concurrency and rate, per queue and per key, and jobs with unique names. `hostile` is
/// all at once, on a redis-server and on the embedded engine: kill -9 and SIGSTOP of workers, of the server or owner
/// and of submitters, SCRIPT FLUSH, CLIENT KILL, full memory and full disks; nothing may be left in the end. `flows`
/// runs random flows on both engines, kills workers, submitters and the server, and compares each with its outcome in
/// memory. `messages` sends job messages from one context to another, kills the coordinators of both and the workers, and
/// counts jobs and results. `mesh` sends them between three nodes, each with a redis-server, supervisors, a worker and a
/// Mycelium daemon (a fake one, unless MYCELIUM_BIN names a real one): kill -9 and SIGSTOP of each process, and cut links.
/// `outbox` commits and rolls back transactions of PostgreSQL with jobs, kills relays, workers, the redis-server and
/// PostgreSQL, and counts jobs and effects; `outbox-sqlite` the same with a file of SQLite. `spread` enqueues jobs of 100 keys into a queue of four parts, then of eight, kills
/// workers and the redis-server, and checks the order of each key; `spread-cluster` the same on a Cluster of three nodes, of
/// which one at a time is killed.
#[derive(Parser)]
#[command(name = "cargo xtask chaos")]
struct Arguments {
    /// One of alone, server, attached, fleet, failover, unconfirmed, schedules, limits, hostile, flows,
    /// messages, mesh, outbox, outbox-sqlite, spread, spread-cluster [default: each in turn]
    #[arg(long, value_parser = Which::from_name)]
    scenario: Option<Which>,
    /// Number of kills and other faults, in all scenarios together
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Jobs of `hostile` on each engine, and of `spread` and `spread-cluster`
    #[arg(long, default_value_t = 3000)]
    jobs: usize,
    /// Random flows of `flows` on each engine
    #[arg(long, default_value_t = 100)]
    dags: usize,
    /// Messages of `messages` and `mesh`
    #[arg(long, default_value_t = 1000)]
    messages: usize,
    /// Transactions of `outbox` and `outbox-sqlite`
    #[arg(long, default_value_t = 1000)]
    transactions: usize,
    /// Engine of `hostile` and `flows`: redis or embedded [default: both]
    #[arg(long, value_parser = hostile::Engine::from_name)]
    engine: Option<hostile::Engine>,
    /// Repeats the choices of an earlier run [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// One object of JSON for each scenario
    #[arg(long)]
    json: bool,
    /// Runs this program as one of the schedulers
    #[arg(long, hide = true, num_args = 3, allow_hyphen_values = true)]
    scheduler: Option<Vec<String>>,
    /// Runs this program as one of the workers whose queues are limited
    #[arg(long, hide = true, num_args = 2)]
    limited_worker: Option<Vec<String>>,
    /// Runs this program as one of the workers of `outbox` and `outbox-sqlite`
    #[arg(long, hide = true)]
    outbox_worker: bool,
    /// Runs this program as one of the workers of `spread`
    #[arg(long, hide = true)]
    spread_worker: bool,
    /// Runs this program as a fake Mycelium daemon
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    mycelium: Option<Vec<String>>,
}

impl Arguments {
    fn engines(&self) -> Vec<hostile::Engine> {
        match self.engine {
            Some(engine) => vec![engine],
            None => hostile::Engine::ALL.to_vec(),
        }
    }

    fn hostile(&self, plan: Plan) -> hostile::Plan {
        let engines = self.engines();
        hostile::Plan {
            binary: plan.binary,
            jobs: self.jobs,
            faults: share(plan.kills, 0, engines.len()),
            engines,
            seed: plan.seed,
            progress: tell,
        }
    }

    fn messages(&self, plan: Plan) -> messages::Plan {
        messages::Plan {
            binary: plan.binary,
            messages: self.messages,
            kills: plan.kills,
            seed: plan.seed,
            progress: tell,
        }
    }

    fn outbox(&self, plan: Plan, database: outbox::Kind) -> Result<outbox::Plan, ChaosError> {
        Ok(outbox::Plan {
            database,
            binary: plan.binary,
            worker: (own()?, vec!["--outbox-worker".to_owned()]),
            transactions: self.transactions,
            kills: plan.kills,
            seed: plan.seed,
            progress: tell,
        })
    }

    fn spread(&self, plan: Plan, servers: spread::Kind) -> Result<spread::Plan, ChaosError> {
        Ok(spread::Plan {
            servers,
            worker: (own()?, vec!["--spread-worker".to_owned()]),
            jobs: self.jobs,
            kills: plan.kills,
            seed: plan.seed,
            progress: tell,
        })
    }

    fn flows(&self, plan: Plan) -> flows::Plan {
        let engines = self.engines();
        flows::Plan {
            binary: plan.binary,
            dags: self.dags,
            kills: share(plan.kills, 0, engines.len()),
            engines,
            seed: plan.seed,
            progress: tell,
        }
    }
}

/// A scenario of either kind.
#[derive(Clone, Copy)]
enum Which {
    Batch(Scenario),
    Fleet(Ground),
    Schedules,
    Limits,
    Hostile,
    Flows,
    Messages,
    Mesh,
    Outbox(outbox::Kind),
    Spread(spread::Kind),
}

impl Which {
    fn all() -> impl Iterator<Item = Self> {
        let batches = Scenario::ALL.into_iter().map(Self::Batch);
        let fleets = Ground::ALL.into_iter().map(Self::Fleet);
        let others = [
            Self::Schedules,
            Self::Limits,
            Self::Hostile,
            Self::Flows,
            Self::Messages,
            Self::Mesh,
        ];
        let outbox = outbox::Kind::ALL.into_iter().map(Self::Outbox);
        let spread = spread::Kind::ALL.into_iter().map(Self::Spread);
        batches
            .chain(fleets)
            .chain(others)
            .chain(outbox)
            .chain(spread)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Batch(scenario) => scenario.name(),
            Self::Fleet(ground) => ground.name(),
            Self::Schedules => "schedules",
            Self::Limits => "limits",
            Self::Hostile => "hostile",
            Self::Flows => "flows",
            Self::Messages => "messages",
            Self::Mesh => "mesh",
            Self::Outbox(database) => database.name(),
            Self::Spread(servers) => servers.name(),
        }
    }

    fn from_name(name: &str) -> Result<Self, String> {
        let known = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        let found = Self::all().find(|which| which.name() == name);
        found.ok_or_else(|| format!("one of {}", known()))
    }

    /// Plays the scenario. Returns whether the promises hold, with a report as text and as JSON.
    async fn play(
        self,
        plan: Plan,
        arguments: &Arguments,
    ) -> Result<(bool, String, String), ChaosError> {
        match self {
            Self::Batch(scenario) => {
                let report = play(&plan, scenario).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Fleet(ground) => {
                let plan = fleet::Plan {
                    binary: plan.binary,
                    ground,
                    troubles: plan.kills,
                    seed: plan.seed,
                };
                let report = fleet::play(&plan).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Schedules => {
                let plan = schedules::Plan {
                    scheduler: (own()?, vec!["--scheduler".to_owned()]),
                    span: DAY,
                    kills: plan.kills,
                    seed: plan.seed,
                };
                let report = schedules::play(&plan).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Limits => {
                let plan = limits::Plan {
                    worker: (own()?, vec!["--limited-worker".to_owned()]),
                    kills: plan.kills,
                    seed: plan.seed,
                };
                let report = limits::play(&plan).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Hostile => {
                let report = hostile::play(&arguments.hostile(plan)).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Flows => {
                let report = flows::play(&arguments.flows(plan)).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Messages => {
                let report = messages::play(&arguments.messages(plan)).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Mesh => {
                let plan = mesh::Plan {
                    binary: plan.binary,
                    daemon: daemon()?,
                    messages: arguments.messages,
                    kills: plan.kills,
                    seed: plan.seed,
                    progress: tell,
                };
                let report = mesh::play(&plan).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Outbox(database) => {
                let report = outbox::play(&arguments.outbox(plan, database)?).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
            Self::Spread(servers) => {
                let report = spread::play(&arguments.spread(plan, servers)?).await?;
                Ok((report.holds(), report.to_string(), report.json()))
            }
        }
    }
}

/// Prints a line of progress.
#[allow(clippy::print_stderr, reason = "it is a command")]
fn tell(line: &str) {
    eprintln!("{line}");
}

/// Returns the path of this program, which also runs as a scheduler and a worker.
fn own() -> Result<PathBuf, ChaosError> {
    std::env::current_exe().map_err(|source| ChaosError::Io {
        what: "this program".to_owned(),
        source,
    })
}

/// Runs as a process of a scenario, if the arguments say so.
async fn be_part(arguments: &Arguments) -> Option<Result<(), String>> {
    if let Some(given) = &arguments.scheduler {
        return Some(schedules::be_scheduler(given).await);
    }
    if let Some(given) = &arguments.limited_worker {
        return Some(limits::be_worker(given).await);
    }
    if arguments.outbox_worker {
        return Some(outbox::be_worker().await);
    }
    if arguments.spread_worker {
        return Some(spread::be_worker().await);
    }
    let given = arguments.mycelium.clone()?;
    Some(mesh::be_daemon(given).await)
}

/// Returns the real Mycelium daemon that `MYCELIUM_BIN` names, or this program as a fake one.
fn daemon() -> Result<(PathBuf, Vec<String>), ChaosError> {
    match std::env::var_os("MYCELIUM_BIN") {
        Some(real) => Ok((real.into(), Vec::new())),
        None => Ok((own()?, vec!["--mycelium".to_owned()])),
    }
}

// A second thread lets one wait for the output of programs while others run.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(ended) = be_part(&arguments).await {
        return match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("chaos: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let seed = arguments.seed.unwrap_or_else(rand::random);
    eprintln!("seed {seed}");
    let binary = match meshwork_binary() {
        Ok(binary) => binary,
        Err(error) => {
            eprintln!("chaos: {error}");
            return ExitCode::FAILURE;
        }
    };
    let scenarios: Vec<_> = match arguments.scenario {
        Some(one) => vec![one],
        None => Which::all().collect(),
    };
    let mut all_hold = true;
    for (number, scenario) in (0..).zip(&scenarios) {
        let kills = share(arguments.kills, number, scenarios.len());
        eprintln!("{}: {kills} kills begin", scenario.name());
        let plan = Plan {
            binary: binary.clone(),
            kills,
            seed,
        };
        match scenario.play(plan, &arguments).await {
            Ok((holds, words, json)) => {
                all_hold &= holds;
                meshwork_test_servers::say(if arguments.json { json } else { words });
            }
            Err(error) => {
                eprintln!("chaos: {}: {error}", scenario.name());
                all_hold = false;
            }
        }
    }
    if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns this scenario's share of the kills, so that the shares add up to `kills`.
fn share(kills: u32, number: u32, scenarios: usize) -> u32 {
    let scenarios = u32::try_from(scenarios).unwrap_or(1);
    (kills + scenarios - 1 - number) / scenarios
}
