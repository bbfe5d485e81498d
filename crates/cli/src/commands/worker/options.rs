//! `meshwork worker`: options for Meshwork's own jobs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use meshwork::runtime::App;
use meshwork::{Prefetch, Retention, Worker, runtime};
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::{ActorId, Group, Instance, NameError, Namespace, ScriptType};
use meshwork_model::retry::RetryBackoff;

use super::app::AppArgs;
use crate::args::parsers;
use crate::args::sandbox::WorkerSandboxArgs;
use crate::commands::action::part;
use crate::error::CommandError;

/// Options for Meshwork's own jobs. The library has the defaults of omitted ones; the help repeats them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Jobs")]
pub(super) struct JobOptions {
    /// The types of scripts to run
    #[arg(
        long = "type",
        value_name = "TYPE",
        display_order = 0,
        help_heading = None::<&str>,
        required_unless_present_any = ["runtimes", "runner", "app", "app_command"],
        value_delimiter = ','
    )]
    pub(super) types: Vec<ScriptType>,
    /// Program of this host that runs scripts of a type, as ruby='ruby {script}'; the path of the script replaces
    /// {script}. May be given several times, for one type each
    #[arg(long = "runtime", value_name = "TYPE=COMMAND", value_parser = parsers::runtime)]
    runtimes: Vec<(ScriptType, String)>,
    /// Python interpreter of this worker's scripts, 3.8 or newer [default: python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Group of the worker [default: default]
    #[arg(long, conflicts_with = "routes")]
    group: Option<Group>,
    /// Name of the worker within its group; jobs can be pinned to it
    #[arg(long, value_name = "NAME")]
    pub(super) instance: Option<Instance>,
    /// Id of an old worker to replace: the worker listens to its stop queue and, while the type migrates, takes from
    /// its lists
    #[arg(long = "legacy-worker-id", value_name = "ID", value_delimiter = ',')]
    legacy_ids: Vec<ActorId>,
    /// Jobs to claim beyond the free slots: auto (as many as keep the slots busy for two trips to the server), off, or a
    /// number that auto does not exceed [default: auto]
    #[arg(long, value_name = "auto|off|N", allow_hyphen_values = true)]
    prefetch: Option<Prefetch>,
    /// Time for a script to clean up after a cancel request or its timeout, before it is killed [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    cancel_grace: Option<Duration>,
    /// Backoff before the first retry of a job without its own, in seconds; it doubles with each attempt, up to
    /// --backoff-cap [default: 1]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    backoff: Option<Duration>,
    /// Longest backoff, in seconds; a job's own first backoff may be longer [default: 600]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    backoff_cap: Option<Duration>,
    /// Retention of ended jobs, in seconds; use the same value for all workers [default: 604800]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    retain_age: Option<Duration>,
    /// Greatest number of stored ended jobs; use the same value for all workers [default: 100000]
    #[arg(long, value_name = "N", value_parser = parsers::whole::<u32>(0..=u64::MAX))]
    retain_count: Option<u32>,
    /// Age from which orphans are requeued, in seconds, up to 3600 [default: 30 for Meshwork's clients, never for
    /// foreign ones]. An orphan is on no list, or its worker is dead. Choose more than foreign workers need from
    /// popping an id to writing `started`; use the same value for all workers
    #[arg(long, value_name = "DURATION", value_parser = parsers::orphan_age, allow_hyphen_values = true)]
    rescue_orphans_after: Option<Duration>,
    /// Prefix of the keys of Nooble4's services, whose actions scripts call with call_action
    #[arg(
        long,
        value_name = "NAME",
        default_value = "nooble4",
        env = "NOOBLE4_PREFIX"
    )]
    action_prefix: Namespace,
    /// Environment of these services
    #[arg(long, value_name = "NAME", default_value = "dev", env = "ENVIRONMENT", value_parser = part)]
    action_env: String,
    /// Wire format of these services: streams or lists
    #[arg(long, value_name = "NAME", default_value = "streams")]
    action_dialect: Dialect,
    /// Folder in which jobs may write log files (--log-path); may be given several times
    #[arg(long, value_name = "FOLDER")]
    log_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) sandbox: WorkerSandboxArgs,
    #[command(flatten)]
    app: AppArgs,
    /// The app of `--app`, when it is loaded, and the number of its processes.
    #[arg(skip)]
    loaded: Option<(App, u32)>,
}

impl JobOptions {
    /// Returns true if a group was given.
    pub(super) fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// Returns the group; the default without one.
    pub(super) fn group(&self) -> Group {
        self.group.clone().unwrap_or_default()
    }

    /// Returns the types of scripts.
    pub(super) fn types(&self) -> Vec<&str> {
        let mut types: Vec<_> = self.types.iter().map(ScriptType::as_str).collect();
        for (script_type, _) in &self.runtimes {
            if !self.types.contains(script_type) {
                types.push(script_type.as_str());
            }
        }
        types.extend(self.tasks());
        types
    }

    /// Returns the endings of the files whose changes start the worker again; none without `--reload`.
    pub(super) fn reloaded(&self) -> Option<&'static [&'static str]> {
        self.app.reloaded()
    }

    /// Loads the app, if there is one.
    pub(super) async fn load(&mut self, concurrency: u16) -> Result<(), CommandError> {
        let slots = (self.sandbox.processes(), concurrency.into());
        self.loaded = self.app.start(self.python.as_deref(), slots).await?;
        Ok(())
    }

    /// Returns the app, if it is loaded.
    pub(super) fn app(&self) -> Option<&App> {
        self.loaded.as_ref().map(|(app, _)| app)
    }

    /// Returns the number of processes of which each has slots.
    pub(super) fn processes(&self) -> usize {
        self.loaded
            .as_ref()
            .map_or(1, |(_, processes)| *processes as usize)
    }

    /// Returns the names of the tasks of the app.
    fn tasks(&self) -> impl Iterator<Item = &str> {
        let tasks = self.app().into_iter().flat_map(App::tasks);
        tasks.map(|task| task.name.as_str())
    }

    /// Returns the types as names.
    pub(super) fn all_types(&self) -> Vec<ScriptType> {
        let of_runtimes = self.runtimes.iter().map(|(name, _)| name);
        let mut all: Vec<_> = self.types.iter().chain(of_runtimes).cloned().collect();
        all.extend(self.tasks().filter_map(|name| name.parse().ok()));
        let mut seen = HashSet::new();
        all.retain(|name| seen.insert(name.clone()));
        all
    }

    /// Sets the options that were given.
    pub(super) fn set(&self, mut worker: Worker) -> Result<Worker, CommandError> {
        let (backoff, retention) = (RetryBackoff::default(), Retention::default());
        worker = worker.actions(NoobleKeys::new(
            self.action_prefix.clone(),
            Some(&self.action_env),
            self.action_dialect,
        ));
        worker = worker
            .legacy_ids(self.legacy_ids.iter().cloned())
            .backoff(RetryBackoff {
                first: self.backoff.unwrap_or(backoff.first),
                cap: self.backoff_cap.unwrap_or(backoff.cap),
            })
            .retention(Retention {
                age: self.retain_age.unwrap_or(retention.age),
                count: self
                    .retain_count
                    .map_or(retention.count, |count| count as usize),
            });
        if let Some(prefetch) = self.prefetch {
            worker = worker.prefetch(prefetch);
        }
        if let Some(age) = self.rescue_orphans_after {
            worker = worker.rescue_orphans_after(age);
        }
        if let Some(grace) = self.cancel_grace {
            worker = worker.cancel_grace(grace);
        }
        for folder in &self.log_dir {
            worker = worker.log_dir(folder);
        }
        if let Some(instance) = &self.instance {
            worker = worker.instance(instance.clone());
        }
        for (at, (script_type, command)) in self.runtimes.iter().enumerate() {
            let before = &self.runtimes[..at];
            if before.iter().any(|(before, _)| before == script_type) {
                return Err(CommandError::usage(format_args!(
                    "--runtime {script_type} is given twice: give one command"
                )));
            }
            let runner = runtime::interpreter(script_type, command).map_err(|error| {
                CommandError::usage(format_args!("the runtime of {script_type}: {error}"))
            })?;
            worker = worker.runtime(script_type.clone(), runner);
        }
        if let Some(app) = self.app() {
            for name in self.tasks() {
                let name: ScriptType = name.parse().map_err(|error: NameError| {
                    CommandError::usage(format_args!("task {name:?} of the app: {error}"))
                })?;
                worker = worker.runtime(name, Arc::new(app.clone()));
            }
        }
        let given = |name: &&ScriptType| self.runtimes.iter().any(|(runtime, _)| runtime == *name);
        let python = self.own_python()?;
        for script_type in self.types.iter().filter(|name| !given(name)) {
            worker = match python {
                Some(path) if script_type.as_str() == ScriptType::PYTHON => {
                    worker.runtime(script_type.clone(), runtime::python_at(path))
                }
                _ => worker.script_type(script_type)?,
            };
        }
        Ok(worker)
    }

    /// Returns the interpreter for Python of `--python`.
    fn own_python(&self) -> Result<Option<&Path>, CommandError> {
        let Some(path) = self.python.as_deref() else {
            return Ok(None);
        };
        let name = path.display();
        if !path.is_file() {
            return Err(CommandError::usage(format_args!(
                "--python {name}: there is no such file"
            )));
        }
        let is_python = |known: &ScriptType| known.as_str() == ScriptType::PYTHON;
        match self.loaded.is_some() || self.types.iter().any(is_python) {
            true => Ok(Some(path)),
            false => Err(CommandError::usage(format_args!(
                "--python {name}: the worker runs no Python; add --type python"
            ))),
        }
    }
}
