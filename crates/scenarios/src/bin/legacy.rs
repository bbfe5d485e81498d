//! `cargo xtask legacy`: old and new workers and clients on one server while a type migrates, and a check of the
//! results. The old worker, the old client and one of Meshwork's workers are processes of this program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use meshwork_scenarios::legacy::{
    Batch, LegacyError, OldList, Orders, Plan, play, push_both, submit, work_as_old, work_as_ours,
};
use meshwork_test_servers::binary::meshwork_binary;

/// Let a type migrate with both generations at work, kill old processes where it hurts, and count
#[derive(Parser)]
#[command(name = "cargo xtask legacy", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Which of the old patterns: suffix, actor or work [default: each in turn]
    #[arg(long, value_parser = OldList::from_name)]
    list: Option<OldList>,
    /// Instead: clients that push each job to both sides and mark none, with plain workers and ours at once
    #[arg(long)]
    unmarked: bool,
    /// Number of jobs, in all patterns together
    #[arg(long, default_value_t = 10_000)]
    jobs: u64,
    /// Probability that an old process is killed at a job, from 0 to 1
    #[arg(long, default_value_t = 0.01)]
    deadly: f64,
    /// Repeats the choices of an earlier run [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Subcommand)]
enum Role {
    /// An old worker
    #[command(hide = true)]
    Worker(Orders),
    /// An old client
    #[command(hide = true)]
    Client {
        #[command(flatten)]
        orders: Orders,
        #[command(flatten)]
        batch: Batch,
    },
    /// A worker of Meshwork
    #[command(hide = true)]
    Ours(Orders),
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        None => Box::pin(world(&arguments)).await,
        Some(Role::Worker(orders)) => work_as_old(orders).map(|()| true),
        Some(Role::Client { orders, batch }) => submit(orders, batch).map(|()| true),
        Some(Role::Ours(orders)) => work_as_ours(orders).await.map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("legacy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if all scenarios hold.
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn world(arguments: &Arguments) -> Result<bool, LegacyError> {
    let seed = arguments.seed.unwrap_or_else(rand::random);
    eprintln!("seed {seed}");
    let lists = arguments
        .list
        .map_or(OldList::ALL.to_vec(), |one| vec![one]);
    let plan = Plan {
        meshwork: meshwork_binary()?,
        legacy: std::env::current_exe()?,
        jobs: arguments.jobs / lists.len() as u64,
        deadly: arguments.deadly,
        seed,
    };
    if arguments.unmarked {
        let jobs = arguments.jobs;
        let report = push_both(&Plan { jobs, ..plan }).await?;
        meshwork_test_servers::say(&report);
        return Ok(report.holds());
    }
    let mut hold = true;
    for list in lists {
        let report = play(&plan, list).await?;
        meshwork_test_servers::say(&report);
        hold &= report.holds();
    }
    Ok(hold)
}
