//! Scripts of the type `python`. [`super::scripted`] runs the process, and `bootstrap.py` runs in it before the script.
//!
//! A script has the environment of all processes of a run, and the variables `CALLER_ID`, `CONTEXT_ID` and `JOB_ID`.
//! Its result is the variable `result`: text and bytes unchanged, any other value as JSON; or else its stdout, as in
//! Hero. `progress(fraction, message=None)` reports progress, from 0 to 1. `add_child(script, *, type=None, input=None,
//! priority=None, delay=None, retries=None, timeout=None, key=None, group=None, env=None)` submits a child and returns
//! its id, `call_action(type, data, timeout=None)` returns the data of a service's reply, and `send_action()` and
//! `notify_action()` do not wait ([`super::requests`]). The exceptions `Permanent`, `Retry`, `Snooze` and `Discard` are verdicts. `inputs[name]` is the result of a
//! prerequisite.

mod check;
mod dependencies;
mod interpreter;
mod requirement;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::outcome::{Failure, Report};
use tokio_util::sync::CancellationToken;

use super::process;
use super::scripted::{self, Interpreter};
use super::workdir::{self, Folder};
use super::{Run, Runtime, RuntimeInfo};
pub(super) use check::check;
use interpreter::{InterpreterError, Searched};

/// Program that the interpreter runs. It reads the script from its folder.
const BOOTSTRAP: &str = include_str!("bootstrap.py");
/// Name of the script's file, also used in `bootstrap.py`.
const SCRIPT: &str = "script.py";

/// Returns the runtime for Python: the interpreter of `MESHWORK_PYTHON`, else `python3`.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(Python(None))
}

/// Returns a runtime for Python with the interpreter at this path.
#[must_use]
pub fn python_at(path: &Path) -> Arc<dyn Runtime> {
    Arc::new(Python(Some(Searched::new(path))))
}

/// The runtime, with its own interpreter if it was given one.
struct Python(Option<Searched>);

impl Python {
    async fn found(&self) -> Result<interpreter::Interpreter, InterpreterError> {
        match &self.0 {
            Some(own) => own.found().await,
            None => interpreter::found().await,
        }
    }
}

impl Runtime for Python {
    fn starts_processes(&self) -> bool {
        true
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        workdir::sweep_once();
        Box::pin(async move {
            let found = match self.found().await {
                Ok(found) => found,
                Err(missing) => return Report::failed(missing.into()),
            };
            let execute = move |run: Run, dropped: CancellationToken| async move {
                execute(&found, &run, &dropped).await
            };
            process::in_order(run, execute).await
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        workdir::sweep_once();
        Box::pin(async {
            self.found().await?;
            Ok(process::probe().await?)
        })
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            let info = match self.found().await {
                Ok(found) => {
                    RuntimeInfo::new(found.path.display().to_string()).version(found.version)
                }
                Err(_) => RuntimeInfo::new("python3"),
            };
            info.missing(self.probe().await.err())
        })
    }
}

async fn execute(
    found: &interpreter::Interpreter,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let environment = dependencies::environment(run, found, dropped).await?;
    let found = environment.as_ref().map_or(found, |own| &own.interpreter);
    let interpreter = Interpreter {
        path: &found.path,
        files: &found.files,
        script: SCRIPT,
        arguments,
    };
    scripted::execute(interpreter, run, dropped).await
}

/// Returns the arguments of the interpreter.
fn arguments(folder: &Folder) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = ["-I", "-X", "utf8", "-c", BOOTSTRAP].map(Into::into).into();
    args.push(process::lifeline()?.to_string().into());
    args.push(folder.outcome().into());
    args.push(MAX_OUTPUT.to_string().into());
    args.push(folder.progress().into());
    args.push(folder.calls().into());
    Ok(args)
}
