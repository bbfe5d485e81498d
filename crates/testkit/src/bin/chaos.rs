//! `cargo xtask chaos`: kills the real command at random moments, and counts what came out.

use std::process::ExitCode;

use clap::Parser;
use meshwork_testkit::chaos::{Plan, Scenario, meshwork_binary, play};

/// Kill workers and engines at random moments, and check that every input has its one result
#[derive(Parser)]
#[command(name = "cargo xtask chaos")]
struct Arguments {
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
    let mut all_hold = true;
    for (scenario, kills) in Scenario::ALL.into_iter().zip(shares(arguments.kills)) {
        let plan = Plan {
            binary: binary.clone(),
            kills,
            seed,
        };
        match play(&plan, scenario).await {
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

/// The kills, spread over the scenarios.
fn shares(kills: u32) -> [u32; 3] {
    [kills.div_ceil(3), (kills + 1) / 3, kills / 3]
}
