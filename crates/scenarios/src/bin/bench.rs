//! `cargo xtask bench`: speed of Meshwork, beside the floor.

use std::env;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use meshwork_scenarios::bench::{
    Counts, Curve, Engine, Figure, Growth, Line, PROGRAMS, Peer, Plan, Series, chart, grow, run,
    serve,
};

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
    /// Only these, as `work-10,latency`; `work` means all that begin so. Python scripts by sandbox profile are measured
    /// only if named: python-open, python-standard, python-strict
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
    /// Measure how figures grow instead, on redis: with waiting jobs, worker processes, bytes of a payload, the delay of
    /// the network, and the numbers of nodes and of idle contexts of a Cluster
    #[arg(
        long, value_delimiter = ',', value_name = "SERIES", num_args = 0..=1, require_equals = true,
        default_missing_value = "waiting,workers,payload,delay,nodes,contexts",
        conflicts_with_all = ["only", "engine", "no_floor", "peers", "chart"]
    )]
    growth: Vec<String>,
    /// Measure growth only up to this value of each quantity
    #[arg(long, value_name = "NUMBER", requires = "growth")]
    most: Option<usize>,
    /// Run jobs of the server in REDIS_URL until the standard input ends: a worker process of --growth
    #[arg(long, hide = true, exclusive = true)]
    worker: bool,
    /// Measure other job queues too: BullMQ, apalis, Celery and NATS, each on a server of its own in the same run
    ///
    /// Only on redis, and by default only the figures that they have: enqueue-one, enqueue-bulk, work-1, work-10,
    /// work-50 and latency. A row for each follows the one of Meshwork, with its version and the ratio of Meshwork's
    /// figure to its own. A job queue that fails has a row with the reason. `cargo xtask bench` builds the programs
    /// from the folder peers first, which takes some minutes. Celery is measured if the packages celery and redis of
    /// python3 are installed, and NATS JetStream if nats-server is in PATH.
    #[arg(long)]
    peers: bool,
    /// Write the measured figures to this file as a chart in SVG, relative to the floor
    ///
    /// A relative path begins at the root of the repository.
    #[arg(long, value_name = "FILE", conflicts_with = "no_floor")]
    chart: Option<PathBuf>,
    /// One object of JSON for each figure, instead of the table
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn plan(&self) -> Result<Plan, String> {
        let (runs, counts) = match self.quick {
            true => (Some(1), Counts::QUICK),
            false => (None, Counts::FULL),
        };
        Ok(Plan {
            figures: self.figures()?,
            engines: self.engines()?,
            runs: self.runs.map(NonZeroUsize::get).or(runs),
            counts,
            floor: !self.no_floor,
            peers: self.peers()?,
        })
    }

    /// Fails if the chart could not be written after the measurement.
    fn check_chart(&self) -> Result<(), String> {
        let Some(file) = &self.chart else {
            return Ok(());
        };
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        match folder.is_dir() && !file.is_dir() {
            true => Ok(()),
            false => Err(format!(
                "--chart {}: name a file in an existing directory",
                file.display()
            )),
        }
    }

    fn figures(&self) -> Result<Vec<Figure>, String> {
        let mut figures = Vec::new();
        for name in &self.only {
            let named = Figure::named(name);
            if named.is_empty() {
                let known = names(Figure::all());
                return Err(format!("no figure is called {name}: there are {known}"));
            }
            figures.extend(named);
        }
        if self.only.is_empty() {
            figures = Figure::all();
            figures.retain(|figure| !self.peers || figure.has_peers());
        }
        match figures.iter().any(|figure| figure.has_peers()) || !self.peers {
            true => Ok(figures),
            false => {
                let mut known = Figure::all();
                known.retain(|figure| figure.has_peers());
                let known = names(known);
                Err(format!(
                    "--peers needs one of the figures {known}: change --only"
                ))
            }
        }
    }

    fn engines(&self) -> Result<Vec<Engine>, String> {
        let mut engines = Vec::new();
        for name in &self.engine {
            let known = Engine::ALL.into_iter().find(|engine| engine.name() == name);
            let unknown = || format!("no engine is called {name}: redis, valkey, embedded");
            engines.push(known.ok_or_else(unknown)?);
        }
        if self.peers {
            return match engines.iter().find(|engine| **engine != Engine::Redis) {
                Some(other) => Err(format!(
                    "--peers measures only on redis: remove --engine {}",
                    other.name()
                )),
                None => Ok(vec![Engine::Redis]),
            };
        }
        if self.engine.is_empty() {
            engines = Engine::ALL.to_vec();
            engines.retain(|engine| engine.is_here());
        }
        Ok(engines)
    }

    fn peers(&self) -> Result<Vec<Peer>, String> {
        if !self.peers {
            return Ok(Vec::new());
        }
        let missing = "--peers needs the programs of the folder peers: run `cargo xtask bench --peers`, \
                       which builds them";
        let programs = env::var_os(PROGRAMS).filter(|path| !path.is_empty());
        let programs = programs.ok_or_else(|| format!("{missing} and sets {PROGRAMS}"))?;
        Ok(Peer::all(Path::new(&programs)))
    }

    /// Returns the measurement of growth; `None` if it was not requested.
    fn growth(&self) -> Result<Option<Growth>, String> {
        if self.growth.is_empty() {
            return Ok(None);
        }
        let series = self.growth.iter().map(|name| {
            let known = Series::ALL.into_iter().find(|series| series.name() == name);
            known.ok_or_else(|| {
                let known = Series::ALL.map(Series::name).join(", ");
                format!("no series is called {name}: there are {known}")
            })
        });
        let program = env::current_exe();
        let (runs, divisor) = if self.quick { (1, 4) } else { (3, 1) };
        Ok(Some(Growth {
            series: series.collect::<Result<_, _>>()?,
            runs: self.runs.map_or(runs, NonZeroUsize::get),
            most: self.most.unwrap_or(usize::MAX),
            divisor,
            program: program.map_err(|why| format!("the path of this program: {why}"))?,
        }))
    }
}

fn names(figures: Vec<Figure>) -> String {
    let names: Vec<_> = figures.into_iter().map(Figure::name).collect();
    names.join(", ")
}

#[allow(clippy::print_stderr, reason = "it is a command")]
fn main() -> ExitCode {
    // Scripts start in a sandbox by the launcher, which is this program.
    meshwork::runtime::init();
    let runtime = tokio::runtime::Runtime::new().map_err(|why| format!("start threads: {why}"));
    match runtime.and_then(|runtime| runtime.block_on(measure(&Arguments::parse()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "it is a command")]
async fn measure(arguments: &Arguments) -> Result<(), String> {
    let step = |step: &str| eprintln!("bench: {step}");
    let ended = if arguments.worker {
        serve().await
    } else if let Some(growth) = arguments.growth()? {
        let print = |curve: &Curve| print(arguments.json, curve.json(), curve);
        grow(&growth, step, print).await
    } else {
        arguments.check_chart()?;
        let plan = arguments.plan()?;
        if !arguments.json {
            meshwork_test_servers::say(Line::head());
        }
        let mut lines = Vec::new();
        let print = |line: &Line| {
            print(arguments.json, line.json(), line);
            lines.push(line.clone());
        };
        let ended = run(&plan, step, print).await;
        if let (Ok(()), Some(file)) = (&ended, &arguments.chart) {
            std::fs::write(file, chart(&lines))
                .map_err(|why| format!("--chart {}: {why}", file.display()))?;
        }
        ended
    };
    ended.map_err(|error| error.to_string())
}

fn print(as_json: bool, json: impl Display, text: impl Display) {
    if as_json {
        meshwork_test_servers::say(json);
    } else {
        meshwork_test_servers::say(text);
    }
}
