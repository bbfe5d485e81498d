//! `meshwork run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::runtime::SandboxPaths;
use meshwork_model::access::{Object, Operation};
use meshwork_model::sandbox::Profile;

use crate::app::App;
use crate::args::input;
use crate::args::input::InputArg;
use crate::args::parsers;
use crate::args::sandbox::PathArgs;
use crate::args::script::Script;
use crate::each::{self, Task};
use crate::ephemeral_worker::WorkerTuning;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::JobArgs;
use crate::scope::ScopeArgs;
use crate::single;

/// Options for jobs that run in this process.
const HERE: &str = "If no worker claims the job";

/// Run a script and print its result
///
/// Runs the job in this process, unless a worker claims it within 0.4 s. With --each, the script runs once per file,
/// several at the same time, with the file's content as its input; the same command, repeated after a crash or a
/// failure, continues the work.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// File of the script; - is stdin. Otherwise data piped to stdin is the script's input
    script: PathBuf,
    /// Arguments of a program, after --
    #[arg(last = true, value_name = "ARG")]
    args: Vec<String>,
    /// The input files: one job each. A script reads its input as INPUT (Rhai) or from stdin (Python)
    #[arg(long, value_name = "FILE", num_args = 1..)]
    each: Option<Vec<PathBuf>>,
    /// Input for the script: JSON, @FILE for the content of a file, or - for stdin. At most 16 MiB [default: data piped
    /// to stdin]
    #[arg(
        long,
        value_name = "JSON|@FILE|-",
        allow_hyphen_values = true,
        conflicts_with = "each"
    )]
    input: Option<InputArg>,
    /// Start anew, even if an earlier run of the same command has not ended
    #[arg(long, requires = "each")]
    fresh: bool,
    #[command(flatten)]
    job_args: JobArgs,
    /// Greatest number of concurrent jobs in this process [default: the number of processors]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = HERE,
          value_parser = parsers::whole::<u16>(1..=1000))]
    concurrency: Option<u16>,
    /// Lease duration, in seconds, 0.3 to 3600: if the process is killed, another worker takes its jobs after this
    /// time, or sooner if it runs on the same host [default: 10]
    #[arg(long, value_name = "DURATION", value_parser = parsers::lease, allow_hyphen_values = true,
          help_heading = HERE)]
    lease: Option<Duration>,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl Run {
    pub(crate) async fn run(mut self, context: &mut App) -> Result<Exit, CommandError> {
        if let Some(scope) = self.scope.open(context).await? {
            if self.each.is_some() {
                return Err(CommandError::usage("--each does not support contexts"));
            }
            self.job_args.enter(&scope);
            // The job may run here.
            scope.client((Object::Queue, Operation::Pop)).await?;
            context
                .enter(scope, (Object::Job, Operation::Create))
                .await?;
        }
        let script =
            Script::with_args(&self.script, self.job_args.script_type.clone(), &self.args)?;
        let tuning = WorkerTuning {
            concurrency: concurrency(self.concurrency),
            lease: self.lease,
            sandbox: self.job_args.sandbox.sandbox,
            paths: self.paths.paths()?,
        };
        let is_confined = tuning
            .sandbox
            .is_some_and(|profile| profile > Profile::Open);
        if !is_confined && tuning.paths != SandboxPaths::default() {
            return Err(CommandError::usage(
                "--read and --write show paths to a script in a sandbox; add --sandbox standard",
            ));
        }
        // For the worker of this command only: a job cannot ask other workers for more than they give.
        self.job_args
            .sandbox
            .sandbox
            .take_if(|profile| *profile == Profile::Open);
        match self.each {
            Some(files) => {
                let Self {
                    job_args, fresh, ..
                } = self;
                let task = Task {
                    script,
                    job_args,
                    files,
                    tuning,
                    fresh,
                };
                Box::pin(each::run(context, task)).await
            }
            None => {
                let input = match self.input {
                    Some(input) => Some(input.read(&self.script)?),
                    // Stdin was read as the script.
                    None if self.script == Path::new("-") => None,
                    None => input::piped()?,
                };
                let mut request = self.job_args.checked(&script).await?;
                if let Some(input) = input {
                    request = request.input(input);
                }
                Box::pin(single::run(context, request, tuning)).await
            }
        }
    }
}

/// Returns the requested number, or that of the processors.
fn concurrency(requested: Option<u16>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    requested.map_or_else(processors, usize::from)
}
