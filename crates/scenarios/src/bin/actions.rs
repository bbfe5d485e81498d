//! `cargo xtask actions`: calls of actions while the services' workers are killed, and a check of the answers. Each
//! worker is a process of the same program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use meshwork_model::keys::nooble::Dialect;
use meshwork_scenarios::actions::{ActionsError, Orders, Plan, play, work};

/// Call services while their workers are killed, and count
///
/// Two services of two worker processes each, 200 calls in flight, and `kill -9` of workers that run actions.
/// Each call is to be answered once, no action to run twice without a kill, and no key to stay for ever.
#[derive(Parser)]
#[command(name = "cargo xtask actions", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// streams or lists [default: each in turn]
    #[arg(long)]
    dialect: Option<Dialect>,
    /// Number of calls, in each dialect
    #[arg(long, default_value_t = 100_000)]
    calls: usize,
    /// Number of kills, in each dialect; less than the number of calls
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// Repeats the choices of an earlier run [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// One object of JSON for each dialect
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Role {
    /// A worker
    #[command(hide = true)]
    Worker(Orders),
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        Some(Role::Worker(orders)) => Box::pin(work(orders)).await.map(|()| true),
        None => Box::pin(all(&arguments)).await,
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("actions: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if the promises hold in all dialects.
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn all(arguments: &Arguments) -> Result<bool, ActionsError> {
    if arguments.kills >= arguments.calls {
        let why = format!("{} kills need more calls", arguments.kills);
        return Err(ActionsError::Odd(why));
    }
    let seed = arguments.seed.unwrap_or_else(rand::random);
    eprintln!("actions: --seed {seed}");
    let both = vec![Dialect::Streams, Dialect::Lists];
    let mut hold = true;
    for dialect in arguments.dialect.map_or(both, |one| vec![one]) {
        let plan = Plan {
            actions: std::env::current_exe()?,
            dialect,
            calls: arguments.calls,
            kills: arguments.kills,
            seed,
        };
        let report = play(&plan).await?;
        match arguments.json {
            true => meshwork_test_servers::say(report.json()),
            false => meshwork_test_servers::say(&report),
        }
        hold &= report.holds();
    }
    Ok(hold)
}
