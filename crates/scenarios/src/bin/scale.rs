//! `cargo xtask scale`: cost of calls while a million jobs wait, compared to a thousand.

use std::process::ExitCode;

use clap::Parser;
use meshwork_scenarios::scale::{Plan, run};

/// Measure calls while very many jobs wait, beside the same calls while few do, and walks through long lists
///
/// Fails where a call costs more than 1.3 times as much, or takes more commands.
#[derive(Parser)]
#[command(name = "cargo xtask scale")]
struct Arguments {
    /// Jobs that wait in the first database
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// Jobs that wait in the second, and ids in the long lists
    #[arg(long, default_value_t = 1_000_000)]
    many: usize,
    /// Objects of scripts in the second database; a hundredth of them is in the first
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// Number of times that each call is made
    #[arg(long, default_value_t = 2_000)]
    calls: usize,
    /// Number of times that each walk is made
    #[arg(long, default_value_t = 30)]
    walks: usize,
    /// One object of JSON for each figure, behind the table
    #[arg(long)]
    json: bool,
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = Plan {
        few: arguments.few,
        many: arguments.many,
        few_objects: (arguments.objects / 100).max(1),
        many_objects: arguments.objects.max(1),
        calls: arguments.calls,
        long: arguments.many,
        walks: arguments.walks,
    };
    match run(&plan).await {
        Ok(report) => {
            meshwork_test_servers::say(&report);
            if arguments.json {
                meshwork_test_servers::say(report.json(&plan).trim_end());
            }
            if report.holds() {
                return ExitCode::SUCCESS;
            }
            eprintln!("scale: not all is as promised");
        }
        Err(error) => eprintln!("scale: {error}"),
    }
    ExitCode::FAILURE
}
