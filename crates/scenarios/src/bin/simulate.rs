//! `cargo xtask simulate`: random schedules of messages between nodes, with lost frames, crashes and wrong clocks.

use std::process::ExitCode;

use clap::Parser;
use meshwork_scenarios::simulate::simulate;

/// Simulate the exchange of messages between nodes on random schedules, and check the rules
#[derive(Parser)]
#[command(name = "cargo xtask simulate")]
struct Arguments {
    /// Seed of the first schedule; the others have the next numbers [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Number of schedules
    #[arg(long, default_value_t = 1_000_000)]
    schedules: u64,
}

#[allow(clippy::print_stderr, reason = "it is a command")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    eprintln!("seed {seed}");
    match simulate(seed, arguments.schedules) {
        Ok(report) => {
            eprintln!(
                "{} schedules, {} messages, {} frames: {:?}",
                report.schedules, report.messages, report.frames, report.outcomes
            );
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("simulate: {violation}");
            ExitCode::FAILURE
        }
    }
}
