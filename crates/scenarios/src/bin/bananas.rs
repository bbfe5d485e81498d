//! `cargo xtask bananas`: clients, workers and schedulers of Bananas and of Meshwork on one server, each a process,
//! and a check of the results. Each of these processes runs this program.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use meshwork_scenarios::bananas::{
    BananasError, Batch, Orders, Plan, Scenario, Shift, play, schedule, submit_as_ours,
    submit_as_theirs, work_as_ours, work_as_theirs, work_over,
};
use meshwork_test_servers::binary::meshwork_binary;

/// Let Bananas and ours work side by side, kill ours, and count
#[derive(Parser)]
#[command(name = "cargo xtask bananas", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// our-worker, their-worker, both, over, kill, stop, timeout or idle [default: each in turn]
    #[arg(long, value_parser = Scenario::from_name)]
    scenario: Option<Scenario>,
    /// Number of jobs, in each of the first four and the last
    #[arg(long, default_value_t = 10_000)]
    jobs: u64,
    /// Number of kills, stops and runs beyond their timeout, in each of the others
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// One object of JSON for each scenario
    #[arg(long)]
    json: bool,
}

/// Time for which the calls of an idle worker are counted: several rounds of its maintenance.
const WATCH: Duration = Duration::from_secs(20);

#[derive(Subcommand)]
enum Role {
    /// A client of Bananas
    #[command(hide = true)]
    Client {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        batch: Batch,
    },
    /// Our client
    #[command(hide = true)]
    OurClient {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        batch: Batch,
    },
    /// A worker of Bananas
    #[command(hide = true)]
    Worker {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        shift: Shift,
    },
    /// Our worker
    #[command(hide = true)]
    OurWorker {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        shift: Shift,
    },
    /// Our worker for jobs that were taken over
    #[command(hide = true)]
    OverWorker {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        shift: Shift,
    },
    /// A scheduler of Bananas
    #[command(hide = true)]
    Scheduler(Orders),
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        None => Box::pin(all(&arguments)).await,
        Some(Role::Client { orders, batch }) => submit_as_theirs(orders, batch).map(|()| true),
        Some(Role::OurClient { orders, batch }) => {
            Box::pin(submit_as_ours(orders, batch)).await.map(|()| true)
        }
        Some(Role::Worker { orders, shift }) => work_as_theirs(orders, shift).map(|()| true),
        Some(Role::OurWorker { orders, shift }) => {
            Box::pin(work_as_ours(orders, shift)).await.map(|()| true)
        }
        Some(Role::OverWorker { orders, shift }) => {
            Box::pin(work_over(orders, shift)).await.map(|()| true)
        }
        Some(Role::Scheduler(orders)) => schedule(orders).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bananas: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if all scenarios hold.
async fn all(arguments: &Arguments) -> Result<bool, BananasError> {
    let plan = Plan {
        meshwork: meshwork_binary()?,
        bananas: std::env::current_exe()?,
        jobs: arguments.jobs,
        kills: arguments.kills,
        watch: WATCH,
    };
    let scenarios = arguments
        .scenario
        .map_or(Scenario::ALL.to_vec(), |one| vec![one]);
    let mut hold = true;
    for scenario in scenarios {
        let outcome = play(&plan, scenario).await?;
        match arguments.json {
            true => meshwork_test_servers::say(outcome.json()),
            false => meshwork_test_servers::say(&outcome),
        }
        hold &= outcome.holds();
    }
    Ok(hold)
}
