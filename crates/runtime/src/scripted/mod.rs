//! Run of a script in an interpreter that leaves its outcome in a file: Python and SAL. [`super::process`] runs the process,
//! [`outcome`] reads the file, and [`progress`] the reports.

mod outcome;
mod progress;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meshwork_model::outcome::{Failure, Report};
use tokio_util::sync::CancellationToken;

use super::Run;
use super::process::{self, Executable, Inherited, NamedBy, NotStarted, Process, blocking, cannot};
use super::requests::Requests;
use super::workdir::Folder;
#[cfg(feature = "sal")]
pub(super) use outcome::encode;
use progress::Reports;

/// An interpreter for one run.
pub(super) struct Interpreter<'a> {
    /// Program.
    pub(super) path: &'a Path,
    /// Files and folders that it reads, besides those of the system.
    pub(super) files: &'a [PathBuf],
    /// Name of the script's file.
    pub(super) script: &'static str,
    /// Returns the arguments for the folder of the run.
    pub(super) arguments: fn(&Folder) -> io::Result<Vec<OsString>>,
}

/// Runs the script of a job.
pub(super) async fn execute(
    interpreter: Interpreter<'_>,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let orders = process::orders(run, interpreter.files).await?;
    let (job, inputs, script) = (Arc::clone(&run.job), run.inputs.clone(), interpreter.script);
    let laid_out = blocking(move || {
        let mut folder = Folder::with(Some((script, &job.script)))?;
        folder.lay_out(&inputs)?;
        let input = process::stdin(folder.root(), job.input.as_deref())?;
        Ok((folder, input))
    });
    let unready = |error| NotStarted::of_system("lay out the script and its input", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let reports = Reports::listen(folder.progress(), run.log.clone()).map_err(unready)?;
    let mut requests = Requests::listen(&folder, run, &orders).map_err(unready)?;
    let args = (interpreter.arguments)(&folder).map_err(unready)?;
    let program = Executable {
        path: interpreter.path,
        args: &args,
        named_by: NamedBy::Worker,
    };
    let inherited = Inherited {
        input: input.into(),
        environment: process::environment(run, &folder)?,
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
