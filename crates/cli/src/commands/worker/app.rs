//! `meshwork worker --app`: the tasks of an app, and the processes that run them.

use std::env;
use std::fmt::Display;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use meshwork::runtime::{App, AppCommand, AppError, AppOptions};
use meshwork::{Client, JobRequest, NewSchedule};
use meshwork_model::name::NameError;
use meshwork_model::queue::{QueueSetting, RateError};
use meshwork_model::route::Route;
use meshwork_model::sandbox::parse_size;

use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Greatest number of processes.
const MAX_PROCESSES: u32 = 256;

/// Program of Node.js that runs a file of tasks with the package beside it.
const NODE: &str = "import { serve } from 'meshwork/worker'; await serve(process.argv[1]);";
/// Endings of the files of Node.js.
const OF_NODE: [&str; 4] = ["js", "mjs", "cjs", "ts"];

/// Ending of the files of Python.
const OF_PYTHON: [&str; 1] = ["py"];

fn is_script_of_node(app: &str) -> bool {
    let ending = Path::new(app).extension();
    ending.is_some_and(|it| OF_NODE.iter().any(|known| it == *known))
}

/// Options of an app.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "App")]
pub(super) struct AppArgs {
    /// Run the tasks of an app: in Python the module and the name of its App, as shop.tasks:app; for Node.js a file, as
    /// ./tasks.js. It is loaded once in each of --processes, and --concurrency is that of each process
    #[arg(long, value_name = "MODULE:NAME|FILE", conflicts_with_all = ["app_command", "types", "runtimes"])]
    app: Option<String>,
    /// Run the tasks of an app in another language: the command that starts one of its processes, as 'ruby worker.rb'
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["types", "runtimes"])]
    app_command: Option<String>,
    /// Start the worker again when a file of the app's code below the current folder has changed; running jobs end first, as at
    /// a shutdown. For development
    #[arg(long, requires = "app")]
    reload: bool,
    /// Replace a process of the app after this number of jobs [default: never]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parsers::whole::<u32>(1..=u64::from(u32::MAX)))]
    max_jobs_per_process: Option<u32>,
    /// Replace a process of the app after its jobs if it takes more memory: 512M, 2G; a plain number is bytes [default: never]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<u64>,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

impl From<AppError> for CommandError {
    fn from(error: AppError) -> Self {
        let made = Self::new(Exit::FAILED, &error);
        match error {
            AppError::NotReady(_) => made.with_hint("its messages are above"),
            _ => made,
        }
    }
}

impl AppArgs {
    /// Returns the endings of the files whose changes start the worker again; none without `--reload`.
    pub(super) fn reloaded(&self) -> Option<&'static [&'static str]> {
        let app = self.app.as_deref().filter(|_| self.reload)?;
        match is_script_of_node(app) {
            true => Some(&OF_NODE),
            false => Some(&OF_PYTHON),
        }
    }

    /// Starts the processes of the app, if there is one. Returns it with their number.
    pub(super) async fn start(
        &self,
        python: Option<&Path>,
        (processes, concurrency): (Option<u64>, u32),
    ) -> Result<Option<(App, u32)>, CommandError> {
        let Some(command) = self.command(python)? else {
            return Ok(None);
        };
        let processes = number_of_processes(processes)?;
        let options = AppOptions {
            processes,
            concurrency,
            max_jobs_per_process: self.max_jobs_per_process,
            max_memory: self.max_memory,
        };
        Ok(Some((App::start(command, options).await?, processes)))
    }

    /// Returns the command that starts a process.
    fn command(&self, python: Option<&Path>) -> Result<Option<AppCommand>, CommandError> {
        if let Some(file) = self.app.as_ref().filter(|app| is_script_of_node(app)) {
            let arguments = ["--input-type=module", "-e", NODE, file];
            return Ok(Some(AppCommand {
                program: "node".into(),
                arguments: arguments.map(Into::into).to_vec(),
            }));
        }
        if let Some(app) = &self.app {
            let arguments = ["-m", "meshwork._child", app];
            return Ok(Some(AppCommand {
                program: python.map_or_else(own_python, Path::to_owned),
                arguments: arguments.map(Into::into).to_vec(),
            }));
        }
        let Some(command) = &self.app_command else {
            return Ok(None);
        };
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let mut words = words.ok_or_else(|| {
            CommandError::usage(format_args!(
                "--app-command {command:?} cannot be read: it is empty, or a quote in it does not end"
            ))
        })?;
        let program = words.remove(0);
        Ok(Some(AppCommand {
            program: program.into(),
            arguments: words.into_iter().map(Into::into).collect(),
        }))
    }
}

/// Stores the schedules of an app, or replaces them by those of its code.
pub(super) async fn store_schedules(app: &App, client: &Client) -> Result<(), CommandError> {
    for schedule in app.schedules() {
        let wrong = |error: &dyn Display| {
            CommandError::usage(format_args!(
                "schedule {:?} of the app: {error}",
                schedule.name
            ))
        };
        let job = JobRequest::from_spec(schedule.job.clone()).map_err(|error| wrong(&error))?;
        let mut new = NewSchedule::cron(&schedule.cron, job).map_err(|error| wrong(&error))?;
        if let Some(zone) = &schedule.zone {
            new = new.zone(zone).map_err(|error| wrong(&error))?;
        }
        client.schedule(&schedule.name)?.replace(new).await?;
    }
    Ok(())
}

/// Sets the limits of the queues of an app's tasks, for all workers. Other limits stay.
pub(super) async fn store_limits(app: &App, client: &Client) -> Result<(), CommandError> {
    for task in app.tasks() {
        let wrong = |error: &dyn Display| {
            CommandError::usage(format_args!("task {:?} of the app: {error}", task.name))
        };
        let mut settings = Vec::new();
        settings.extend(
            task.concurrency
                .map(|it| QueueSetting::Concurrency(Some(it))),
        );
        let of_keys = task.key_concurrency;
        settings.extend(of_keys.map(|it| QueueSetting::KeyConcurrency(Some(it))));
        if let Some(rate) = &task.rate {
            let rate = rate.parse().map_err(|error: RateError| wrong(&error))?;
            settings.push(QueueSetting::Rate(Some(rate)));
        }
        if settings.is_empty() {
            continue;
        }
        let name = |error: NameError| wrong(&error);
        let mut route = Route::to(task.name.parse().map_err(name)?);
        route.group = task
            .group
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(name)?;
        let queue = route.queue(client.broker().keys());
        client.update_queue(&queue, &settings).await?;
    }
    Ok(())
}

/// Returns the number of processes of an app.
///
/// # Errors
/// It is 0, or more than a host needs.
fn number_of_processes(given: Option<u64>) -> Result<u32, CommandError> {
    let Some(given) = given else {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        return Ok(u32::try_from(processors).map_or(MAX_PROCESSES, |it| it.min(MAX_PROCESSES)));
    };
    let fits = u32::try_from(given)
        .ok()
        .filter(|it| (1..=MAX_PROCESSES).contains(it));
    fits.ok_or_else(|| {
        CommandError::usage(format_args!(
            "--processes {given}: an app has 1 to {MAX_PROCESSES} processes"
        ))
    })
}

/// Returns the interpreter beside this command, as in an environment into which pip has installed it; else that of the PATH.
fn own_python() -> PathBuf {
    if let Some(python) = env::var_os("MESHWORK_PYTHON") {
        return python.into();
    }
    let beside = env::current_exe().ok();
    let beside = beside.and_then(|command| Some(command.parent()?.join("python")));
    match beside {
        Some(python) if python.is_file() => python,
        _ => PathBuf::from("python3"),
    }
}
