//! Tasks of an app in another language: processes that have loaded the app's code run them, one after another. The worker
//! claims the jobs, holds their leases and enforces timeouts; a process gets a run over a socket, which is its stdin, and
//! sends the result back ([`mod@wire`], docs/adding-a-language.md).
//!
//! A process that blocks, leaks or dies costs neither leases nor the runs beside it. One that does not end a run in time is
//! killed, and replaced; the runs beside it are snoozed, without a counted attempt. If a process dies with several runs in it,
//! each of them runs again alone once, so that only the one that ends its process fails ([`mod@suspects`]).

mod active;
mod pool;
mod process;
mod run;
mod spawner;
mod suspects;
mod wire;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, FailureKind, Report};

use super::process::in_order;
use super::{Run, Runtime, RuntimeInfo};
use pool::Pool;
use suspects::Suspects;
pub use wire::{Task, TaskSchedule};

/// The command that starts a process of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl AppCommand {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

impl fmt::Display for AppCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        let mut arguments = self.arguments.iter();
        arguments.try_for_each(|one| write!(f, " {}", one.display()))
    }
}

/// Options of the processes of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppOptions {
    /// Number of processes, from 1.
    pub processes: u32,
    /// Number of runs in one process at once, from 1.
    pub concurrency: u32,
    /// Number of runs after which a process is replaced. Default: no limit.
    pub max_jobs_per_process: Option<u32>,
    /// Resident memory in bytes beyond which a process is replaced after its runs. Default: no limit.
    pub max_memory: Option<u64>,
}

/// The app cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The host refused a process.
    #[error("cannot start a process of the app: {0}")]
    Start(io::Error),
    /// The program does not exist, or cannot be started.
    #[error("cannot start `{command}`: {source}")]
    Program {
        /// The command.
        command: String,
        /// Reason.
        source: io::Error,
    },
    /// The process did not load the app.
    #[error("the app is not loaded: {0}")]
    NotReady(String),
    /// The app has no task.
    #[error("the app has no task: nothing is to be run")]
    NoTask,
}

impl AppError {
    fn program(command: &AppCommand, source: io::Error) -> Self {
        let command = command.to_string();
        Self::Program { command, source }
    }
}

/// An app with its processes; clones share them. It is the runtime of its tasks.
#[derive(Debug, Clone)]
pub struct App {
    inner: Arc<Inner>,
    tasks: Arc<[Task]>,
    schedules: Arc<[TaskSchedule]>,
}

#[derive(Debug)]
struct Inner {
    pool: Arc<Pool>,
    suspects: Suspects,
}

impl App {
    /// Starts the processes of an app, and waits until the first one has loaded it.
    ///
    /// # Errors
    /// The process cannot be started or does not load the app, or the app has no task.
    pub async fn start(command: AppCommand, options: AppOptions) -> Result<Self, AppError> {
        let (pool, loaded) = Pool::start(command, options).await?;
        let app = Self {
            inner: Arc::new(Inner {
                pool,
                suspects: Suspects::default(),
            }),
            tasks: loaded.tasks.into(),
            schedules: loaded.schedules.into(),
        };
        if app.tasks.is_empty() {
            app.close().await;
            return Err(AppError::NoTask);
        }
        Ok(app)
    }

    /// Returns the tasks of the app.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the schedules of the app.
    #[must_use]
    pub fn schedules(&self) -> &[TaskSchedule] {
        &self.schedules
    }

    /// Ends the processes. To be called when the worker has stopped: a run that is left ends with its process.
    pub async fn close(&self) {
        self.inner.pool.close().await;
    }
}

impl Runtime for App {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        let inner = Arc::clone(&self.inner);
        in_order(run, move |run, dropped| run::run(inner, run, dropped))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let fault = self.inner.pool.fault();
        let fault = fault.map(|fault| Failure::new(FailureKind::NotStarted, fault).of_host());
        Box::pin(std::future::ready(fault.map_or(Ok(()), Err)))
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            RuntimeInfo::new("a process of the app").missing(self.probe().await.err())
        })
    }
}

impl Inner {
    /// Returns the failure of a job whose process has died with it and others.
    fn died(&self, id: &str, how: &str, (together, for_other): (usize, bool)) -> Failure {
        let again = |message| Failure::new(FailureKind::Snoozed, message).after(Duration::ZERO);
        if for_other {
            return again("its process was ended for another job".to_owned());
        }
        if together > 1 && self.suspects.add(id) {
            let others = together - 1;
            return again(format!(
                "its process ended beside {others} other jobs ({how}): it runs again alone"
            ));
        }
        self.suspects.remove(id);
        Failure::new(
            FailureKind::Script,
            format!("the process of the task ended: {how}"),
        )
    }
}
