//! Options of sandboxes: of jobs and queues, and of workers.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::runtime::{SandboxPaths, SandboxPolicy};
use meshwork_model::name::ScriptType;
use meshwork_model::queue::QueueSetting;
use meshwork_model::sandbox::{
    InvalidSandbox, Limit, Limits, Profile, SandboxSettings, parse_size,
};

use super::parsers;
use crate::error::CommandError;
use crate::out::note;

/// Limits of a run.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct LimitArgs {
    /// Limit of the memory of all processes of a run: 512M, 2G; a plain number is bytes
    #[arg(long = "memory", id = "limit_memory", value_name = "SIZE", value_parser = size(Limit::Memory))]
    memory: Option<u64>,
    /// Limit of the processor time of all processes of a run: 90s, 10m
    #[arg(long = "cpu", id = "limit_cpu", value_name = "DURATION", value_parser = cpu)]
    cpu: Option<Duration>,
    /// Limit of the number of processes and threads of each run at once; not the number of jobs. With `worker --app`: the
    /// number of processes that run its tasks [default: number of processors]
    #[arg(long = "processes", id = "limit_processes", value_name = "N", value_parser = number(Limit::Processes))]
    processes: Option<u64>,
    /// Limit of the number of open files of each process of a run
    #[arg(long = "files", id = "limit_files", value_name = "N", value_parser = number(Limit::Files))]
    files: Option<u64>,
    /// Limit of the size of a run's work folder
    #[arg(long = "disk", id = "limit_disk", value_name = "SIZE", value_parser = size(Limit::Disk))]
    disk: Option<u64>,
    /// Limit of the output of a run, stdout and stderr together
    #[arg(long = "output", id = "limit_output", value_name = "SIZE", value_parser = size(Limit::Output))]
    output: Option<u64>,
}

/// Sandbox of a job.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct JobSandboxArgs {
    /// Profile of the sandbox: open, standard or strict. A job can only ask for a stricter one than its queue and its
    /// worker give [default: that of the worker]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) sandbox: Option<Profile>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Sandbox of a worker's runs.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct WorkerSandboxArgs {
    /// Profile of the sandbox of scripts: open, standard or strict [default: open in a data directory, standard on a
    /// server]
    #[arg(long, value_name = "PROFILE", env = "MESHWORK_SANDBOX")]
    sandbox: Option<Profile>,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Paths of the host that scripts in the sandbox reach.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct PathArgs {
    /// Path that scripts in the sandbox can read; may be given several times
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Path that scripts in the sandbox can read and write; may be given several times
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
}

impl PathArgs {
    /// Returns the paths.
    ///
    /// # Errors
    /// One does not exist.
    pub(crate) fn paths(&self) -> Result<SandboxPaths, CommandError> {
        Ok(SandboxPaths {
            read: existing("--read", &self.read)?,
            write: existing("--write", &self.write)?,
        })
    }
}

/// Returns a parser of sizes within the range of a limit.
fn size(limit: Limit) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = parse_size(text).map_err(|error| error.to_string())?;
        checked(limit, bytes)
    }
}

/// Returns a parser of numbers within the range of a limit.
fn number(limit: Limit) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse();
        checked(limit, number.map_err(|_| "give a whole number".to_owned())?)
    }
}

/// Parses a limit of processor time.
fn cpu(text: &str) -> Result<Duration, String> {
    let span = parsers::span(text)?;
    checked(Limit::Cpu, millis(span)).map(|_| span)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn checked(limit: Limit, value: u64) -> Result<u64, String> {
    let settings = SandboxSettings {
        limits: [(limit, value)].into_iter().collect(),
        ..SandboxSettings::default()
    };
    let fault = |fault: InvalidSandbox| fault.to_string();
    settings.check().map_err(fault)?;
    Ok(value)
}

impl LimitArgs {
    /// Returns the limits.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::NONE;
        limits.set(Limit::Memory, self.memory);
        limits.set(Limit::Cpu, self.cpu.map(millis));
        limits.set(Limit::Processes, self.processes);
        limits.set(Limit::Files, self.files);
        limits.set(Limit::Disk, self.disk);
        limits.set(Limit::Output, self.output);
        limits
    }
}

impl JobSandboxArgs {
    /// Returns the request of a job.
    pub(crate) fn settings(&self) -> SandboxSettings {
        SandboxSettings {
            profile: self.sandbox,
            parent: None,
            limits: self.limits.limits(),
        }
    }

    /// Returns the settings of a queue.
    pub(crate) fn queue_settings(&self) -> Vec<QueueSetting> {
        let profile = self
            .sandbox
            .map(|profile| QueueSetting::Sandbox(Some(profile)));
        let limits = self.limits.limits();
        let limits = limits
            .iter()
            .map(|(limit, value)| QueueSetting::RunLimit(limit, Some(value)));
        profile.into_iter().chain(limits).collect()
    }
}

impl WorkerSandboxArgs {
    /// Returns the policy of a worker. `is_private` is true if only this user can enqueue jobs.
    ///
    /// # Errors
    /// A path of `--read` or `--write` does not exist.
    pub(crate) fn policy(&self, is_private: bool) -> Result<SandboxPolicy, CommandError> {
        let profile = self.sandbox.unwrap_or(Profile::of_store(is_private));
        let policy = SandboxPolicy::new(profile);
        Ok(policy
            .limits(self.limits.limits())
            .paths(self.paths.paths()?))
    }

    /// Returns the limit of the number of processes of a run; for an app, the number of its processes.
    pub(crate) fn processes(&self) -> Option<u64> {
        self.limits.processes
    }

    /// Prints that scripts are confined by default, if one of these types starts processes.
    pub(crate) fn note_default<'a>(
        &self,
        is_private: bool,
        types: impl IntoIterator<Item = &'a str>,
    ) {
        let starts_processes = types.into_iter().any(|name| name != ScriptType::OSIS);
        let default = Profile::of_store(is_private);
        if self.sandbox.is_none() && default > Profile::Open && starts_processes {
            note(format_args!(
                "scripts run in the sandbox `{default}`; --sandbox open runs them without one"
            ));
        }
    }
}

/// Returns absolute paths, each of which exists.
fn existing(option: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let each = |path: &PathBuf| {
        path.canonicalize().map_err(|error| {
            CommandError::usage(format_args!("{option} {}: {error}", path.display()))
        })
    };
    paths.iter().map(each).collect()
}
