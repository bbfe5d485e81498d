//! `cargo xtask chaos`: kills the real command at random moments, and counts what came out.

use std::process::ExitCode;

use clap::Parser;
use meshwork_testkit::chaos::{Plan, Scenario, meshwork_binary, play};

/// Kill workers and engines at random moments, and check that every input has its one result
#[derive(Parser)]
#[command(name = "cargo xtask chaos")]
struct Arguments {
    /// What is killed: `run` alone, a worker on a redis-server, or the embedded engine's owner with
    /// others attached [default: each in turn]
    #[arg(long, value_parser = Scenario::from_name)]
    scenario: Option<Scenario>,
    /// How often to kill, in all scenarios together
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Repeats the choices of an earlier run [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// One object of JSON for each scenario
    #[arg(long)]
    json: bool,
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    eprintln!("seed {seed}");
    let binary = match meshwork_binary() {
        Ok(binary) => binary,
        Err(error) => {
            eprintln!("chaos: {error}");
            return ExitCode::FAILURE;
        }
    };
    let scenarios = arguments
        .scenario
        .map_or(Scenario::ALL.to_vec(), |one| vec![one]);
    let mut all_hold = true;
    for (number, scenario) in (0..).zip(&scenarios) {
        let kills = share(arguments.kills, number, scenarios.len());
        eprintln!("{}: {kills} kills begin", scenario.name());
        let plan = Plan {
            binary: binary.clone(),
            kills,
            seed,
        };
        match play(&plan, *scenario).await {
            Ok(report) => {
                all_hold &= report.holds();
                let text = if arguments.json {
                    report.json()
                } else {
                    report.to_string()
                };
                println!("{text}");
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

/// The kills of one scenario, so that all together have as many as asked for.
fn share(kills: u32, number: u32, scenarios: usize) -> u32 {
    let scenarios = u32::try_from(scenarios).unwrap_or(1);
    (kills + scenarios - 1 - number) / scenarios
}
