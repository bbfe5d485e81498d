//! `meshwork worker`: what only jobs of ours, and of Hero, need.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::model::name::{ActorId, Group, Instance, ScriptType};
use meshwork::model::retry::RetryBackoff;
use meshwork::{Retention, Worker, runner};

use crate::error::CommandError;
use crate::value;

/// Options for jobs of Hero alone. What is not said is left to the library, whose defaults the
/// help names.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Jobs of Hero")]
pub(super) struct Hero {
    /// The types of scripts to run
    #[arg(
        long = "type",
        value_name = "TYPE",
        required_unless_present_any = ["runtimes", "runner"],
        value_delimiter = ','
    )]
    pub(super) types: Vec<ScriptType>,
    /// A type of scripts that a program of this host runs, as ruby='ruby {script}': the script's file takes the place of
    /// {script}. May be given several times, each with a type of its own
    #[arg(long = "runtime", value_name = "TYPE=COMMAND", value_parser = value::runtime)]
    runtimes: Vec<(ScriptType, String)>,
    /// The group it belongs to [default: default]
    #[arg(long, conflicts_with = "routes")]
    group: Option<Group>,
    /// A name of its own within the group, so that jobs can be sent to it alone
    #[arg(long, value_name = "NAME")]
    pub(super) instance: Option<Instance>,
    /// The id of an old worker that it takes over: it hears requests on its stop queue and, while the type
    /// migrates, takes from its lists
    #[arg(
        long = "legacy-worker-id",
        alias = "legacy-id",
        value_name = "ID",
        value_delimiter = ','
    )]
    legacy_ids: Vec<ActorId>,
    /// How long a script that is asked to stop, or whose time is over, has to put things in order before it
    /// is killed [default: 5s]
    #[arg(long, alias = "stop-grace", value_name = "TIME", value_parser = value::wait, allow_hyphen_values = true)]
    cancel_grace: Option<Duration>,
    /// How long a job that failed waits for its next run, where it does not say so itself, in seconds; it is
    /// doubled with each run, up to --backoff-cap [default: 1]
    #[arg(long, value_name = "S", value_parser = value::wait, allow_hyphen_values = true)]
    backoff: Option<Duration>,
    /// The longest such pause, in seconds [default: 600]
    #[arg(long, value_name = "S", value_parser = value::wait, allow_hyphen_values = true)]
    backoff_cap: Option<Duration>,
    /// For how long ended jobs are kept, in seconds; give it to all workers alike [default: 604800]
    #[arg(long, value_name = "S", value_parser = value::wait, allow_hyphen_values = true)]
    retain_age: Option<Duration>,
    /// How many ended jobs are kept; give it to all workers alike [default: 100000]
    #[arg(long, value_name = "N")]
    retain_count: Option<u32>,
    /// Push orphans of foreign clients again after this many seconds, up to 3600; those of our clients too [default: 30
    /// for ours, never for foreign ones]. An orphan stands on no list, or its worker is gone. Choose more than foreign
    /// workers ever take from popping an id to writing `started`, and give it to all workers alike
    #[arg(long, value_name = "AGE", value_parser = value::orphan_age, allow_hyphen_values = true)]
    rescue_orphans_after: Option<Duration>,
    /// A folder in which jobs may have log files (--log-path); may be given several times
    #[arg(long, value_name = "FOLDER")]
    log_dir: Vec<PathBuf>,
}

impl Hero {
    /// Whether a group was named.
    pub(super) fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// The group where routes name none.
    pub(super) fn group(&self) -> Group {
        self.group.clone().unwrap_or_default()
    }

    /// The types of scripts that it runs.
    pub(super) fn types(&self) -> Vec<&str> {
        let mut types: Vec<_> = self.types.iter().map(ScriptType::as_str).collect();
        for (script_type, _) in &self.runtimes {
            if !self.types.contains(script_type) {
                types.push(script_type.as_str());
            }
        }
        types
    }

    /// The same as names.
    pub(super) fn all_types(&self) -> Vec<ScriptType> {
        let of_runtimes = self.runtimes.iter().map(|(name, _)| name);
        let mut all: Vec<_> = self.types.iter().chain(of_runtimes).cloned().collect();
        let mut seen = HashSet::new();
        all.retain(|name| seen.insert(name.clone()));
        all
    }

    /// Sets what was said.
    pub(super) fn set(&self, mut worker: Worker) -> Result<Worker, CommandError> {
        let (backoff, retention) = (RetryBackoff::default(), Retention::default());
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
                    "--runtime {script_type} is given twice: say which command it is"
                )));
            }
            let runner = runner::interpreter(script_type, command).map_err(|error| {
                CommandError::usage(format_args!("the runtime of {script_type}: {error}"))
            })?;
            worker = worker.runner(script_type.clone(), runner);
        }
        let given = |name: &&ScriptType| self.runtimes.iter().any(|(runtime, _)| runtime == *name);
        for script_type in self.types.iter().filter(|name| !given(name)) {
            worker = worker.script_type(script_type)?;
        }
        Ok(worker)
    }
}
