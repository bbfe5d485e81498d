//! `cargo xtask bench`: speed of Meshwork, beside the floor.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Parser;
use meshwork_scenarios::bench::{Counts, Engine, Figure, Line, Plan, run};

/// Measure how fast jobs are enqueued and run, beside the least that any such queue costs
///
/// Each run has a fresh engine with an append-only file flushed every second, and ours and the floor take turns.
/// A ratio is ours to the floor's best in the same run: of a latency and of memory, less is better.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// One run of each, with fewer jobs
    #[arg(long)]
    quick: bool,
    /// Only these, as `work-10,latency`; `work` means all that begin so
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Only on these engines: redis, valkey, embedded
    #[arg(long, value_delimiter = ',', value_name = "ENGINES")]
    engine: Vec<String>,
    /// Number of runs of each (default: 3, and 25 of call-latency; with --quick, once)
    #[arg(long)]
    runs: Option<NonZeroUsize>,
    /// Without the floor beside
    #[arg(long)]
    no_floor: bool,
    /// One object of JSON for each figure, instead of the table
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn plan(&self) -> Result<Plan, String> {
        let mut figures = Vec::new();
        for name in &self.only {
            let named = Figure::named(name);
            if named.is_empty() {
                let known = Figure::all().into_iter().map(Figure::name);
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(format!("no figure is called {name}: there are {known}"));
            }
            figures.extend(named);
        }
        if self.only.is_empty() {
            figures = Figure::all();
        }
        let mut engines = Vec::new();
        for name in &self.engine {
            let known = Engine::ALL.into_iter().find(|engine| engine.name() == name);
            let unknown = || format!("no engine is called {name}: redis, valkey, embedded");
            engines.push(known.ok_or_else(unknown)?);
        }
        if self.engine.is_empty() {
            engines = Engine::ALL.to_vec();
            engines.retain(|engine| engine.is_here());
        }
        let (runs, counts) = match self.quick {
            true => (Some(1), Counts::QUICK),
            false => (None, Counts::FULL),
        };
        Ok(Plan {
            figures,
            engines,
            runs: self.runs.map(NonZeroUsize::get).or(runs),
            counts,
            floor: !self.no_floor,
        })
    }
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "it is a command")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("bench: {why}");
            return ExitCode::FAILURE;
        }
    };
    if !arguments.json {
        meshwork_test_servers::say(Line::head());
    }
    let step = |step: &str| eprintln!("bench: {step}");
    let print = |line: &Line| match arguments.json {
        true => meshwork_test_servers::say(line.json()),
        false => meshwork_test_servers::say(line),
    };
    match run(&plan, step, print).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
