//! `cargo xtask fuzz`: the same random commands to the embedded engine and to redis-server.

use std::process::ExitCode;

use clap::Parser;
use meshwork_fuzz::{Plan, run};
use meshwork_test_servers::servers::RealServer;

/// Send the same random commands to the embedded engine and to redis-server 7.0, and compare
#[derive(Parser)]
#[command(name = "cargo xtask fuzz")]
struct Arguments {
    /// Number of commands
    #[arg(long, default_value_t = 1_000_000)]
    commands: u64,
    /// Repeats the choices of an earlier run [default: a fresh one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
}

#[allow(clippy::print_stderr, reason = "it is a command")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = Plan {
        commands: arguments.commands,
        seed: arguments.seed.unwrap_or_else(rand::random),
    };
    eprintln!("seed {}", plan.seed);
    let Some(server) = RealServer::redis().start_for("cargo xtask fuzz") else {
        return ExitCode::FAILURE;
    };
    match run(plan, &server.socket()) {
        Ok(()) => {
            meshwork_test_servers::say(format_args!("{} commands, no difference", plan.commands));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
