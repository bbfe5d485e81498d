//! Scripts of the type `python`. [`super::process`] runs the process, [`outcome`] reads its result, and `bootstrap.py`
//! runs in it before the script.
//!
//! A script has the environment of all processes of a run, and the variables `CALLER_ID`, `CONTEXT_ID` and `JOB_ID`.
//! Its result is the variable `result`: text and bytes unchanged, any other value as JSON; or else its stdout, as in
//! Hero. `progress(fraction, message=None)` reports progress, from 0 to 1. `add_child(script, *, type=None, input=None,
//! priority=None, delay=None, retries=None, timeout=None, key=None, group=None, env=None)` submits a child and returns
//! its id, `call_action(type, data, timeout=None)` returns the data of a service's reply, and `send_action()` and
//! `notify_action()` do not wait ([`super::requests`]). The exceptions `Permanent`, `Retry`, `Snooze` and `Discard` are verdicts. `inputs[name]` is the result of a
//! prerequisite.

mod check;
mod interpreter;
mod outcome;
mod progress;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::outcome::{Failure, Report};
use tokio_util::sync::CancellationToken;

use super::process::{self, Executable, Inherited, NamedBy, NotStarted, Process, blocking, cannot};
use super::requests::Requests;
use super::workdir::{self, Folder};
use super::{Run, Runtime, RuntimeInfo};
pub(super) use check::check;
use progress::Reports;

/// Program that the interpreter runs. It reads the script from its folder.
const BOOTSTRAP: &str = include_str!("bootstrap.py");
/// Name of the script's file, also used in `bootstrap.py`.
const SCRIPT: &str = "script.py";

/// Returns the runtime for Python.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(Python)
}

struct Python;

impl Runtime for Python {
    fn starts_processes(&self) -> bool {
        true
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        workdir::sweep_once();
        process::in_order(run, async move |run, dropped| execute(&run, &dropped).await)
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        workdir::sweep_once();
        Box::pin(async {
            interpreter::found().await.map_err(NotStarted::from)?;
            Ok(process::probe().await?)
        })
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            let info = match interpreter::found().await {
                Ok(found) => {
                    RuntimeInfo::new(found.path.display().to_string()).version(found.version)
                }
                Err(_) => RuntimeInfo::new("python3"),
            };
            info.missing(self.probe().await.err())
        })
    }
}

async fn execute(run: &Run, dropped: &CancellationToken) -> Result<Report, Failure> {
    let interpreter = interpreter::found().await.map_err(NotStarted::from)?;
    let orders = process::orders(run, &interpreter.files).await?;
    let (job, inputs) = (Arc::clone(&run.job), run.inputs.clone());
    let laid_out = blocking(move || {
        let mut folder = Folder::with(Some((SCRIPT, &job.script)))?;
        folder.lay_out(&inputs)?;
        Ok((folder, process::stdin(job.input.as_deref())?))
    });
    let unready = |error| NotStarted::of_system("lay out the script and its input", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let reports = Reports::listen(folder.progress(), run.log.clone()).map_err(unready)?;
    let mut requests = Requests::listen(&folder, run, &orders).map_err(unready)?;
    let args = arguments(&folder).map_err(unready)?;
    let program = Executable {
        path: &interpreter.path,
        args: &args,
        named_by: NamedBy::Worker,
    };
    let inherited = Inherited {
        input: input.into(),
        calls: requests.inherited(),
    };
    let process = Process::start(program, run, &folder, inherited, &orders)?;
    let end = process.wait(run, dropped).await;
    drop(requests);
    let ended = process.end(end).await?;
    reports.end().await;
    // On a thread for blocking calls, since the removal may take long.
    let report = blocking(move || {
        Ok(ended.report(|status, printed| outcome::result(&folder, status, printed)))
    });
    report
        .await
        .map_err(|error| cannot("read the script's outcome", &error))
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
