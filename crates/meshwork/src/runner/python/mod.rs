//! Scripts of the type `python`. How the process is kept is in [`super::process`], what a script leaves in
//! [`outcome`], what runs in it before the script in `bootstrap.py`.
//!
//! Beside what every process of a run finds, `CALLER_ID`, `CONTEXT_ID` and `JOB_ID` are variables of the script. Its
//! result is the variable `result`: text and bytes as they are, anything else as JSON. If it sets none, the result is
//! what it printed, as in Hero. With `progress(fraction, message=None)` it says how far it is, from 0 to 1. With
//! `submit(script, *, type=None, input=None, priority=None, delay=None, retries=None, timeout=None, key=None,
//! group=None, env=None)` it gets a child, and its id ([`requests`]). The exceptions `Permanent`, `Retry`, `Snooze` and
//! `Discard` are verdicts. `inputs[name]` is the result of a job that it depends on.

mod check;
mod interpreter;
mod outcome;
mod progress;
mod requests;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::process::{self, Process, blocking, cannot};
use super::workdir::{self, Folder};
use super::{Run, Runner};
pub(super) use check::check;
use progress::Reports;
use requests::Requests;

/// Bootstrap that the interpreter runs; it reads the script from its folder.
const BOOTSTRAP: &str = include_str!("bootstrap.py");
/// The name of the script's file; `bootstrap.py` knows it too.
const SCRIPT: &str = "script.py";

/// The runner for Python.
pub(super) fn runner() -> Arc<dyn Runner> {
    Arc::new(Python {
        interpreter: Arc::default(),
    })
}

struct Python {
    /// Found at the first script; looked for again while there is none.
    interpreter: Arc<OnceCell<PathBuf>>,
}

impl Runner for Python {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        let interpreter = Arc::clone(&self.interpreter);
        process::in_order(run, async move |run, dropped| {
            execute(&interpreter, &run, &dropped).await
        })
    }
}

async fn execute(
    interpreter: &OnceCell<PathBuf>,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let permanent = |message: String| Failure::new(FailureKind::Permanent, message);
    let interpreter = interpreter.get_or_try_init(get_ready).await;
    let interpreter = interpreter.map_err(|error| permanent(error.to_string()))?;
    let (job, inputs) = (Arc::clone(&run.job), run.inputs.clone());
    let laid_out = blocking(move || {
        let mut folder = Folder::with(Some((SCRIPT, &job.script)))?;
        folder.lay_out(&inputs)?;
        Ok((folder, process::stdin(job.input.as_deref())?))
    });
    let unready = |error| cannot("lay out the script and its input", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let reports = Reports::listen(folder.progress(), run.log.clone()).map_err(unready)?;
    let requests = Requests::listen(folder.root(), run.submitter.clone()).map_err(unready)?;
    let args = arguments(&folder).map_err(unready)?;
    let process = Process::start((interpreter, &args), run, &folder, input)?;
    let end = process.wait(run, dropped).await;
    drop(requests);
    let ended = process.end(end).await?;
    reports.end().await;
    // The folder is removed where it may take its time.
    let report = blocking(move || {
        Ok(ended.report(|status, printed| outcome::result(folder.outcome(), status, printed)))
    });
    report
        .await
        .map_err(|error| cannot("read the script's outcome", &error))
}

/// Finds the interpreter, and puts in order what killed workers left.
async fn get_ready() -> Result<PathBuf, interpreter::InterpreterError> {
    let (found, ()) = tokio::join!(interpreter::find(), workdir::sweep_temporary());
    found
}

/// The arguments of the interpreter.
fn arguments(folder: &Folder) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = ["-I", "-X", "utf8", "-c", BOOTSTRAP].map(Into::into).into();
    args.push(process::lifeline()?.to_string().into());
    args.push(folder.outcome().into());
    args.push(MAX_OUTPUT.to_string().into());
    args.push(folder.progress().into());
    Ok(args)
}
