//! Scripts of the type `python`: each in a process group and a folder of its own. How the process is kept is
//! in [`child`], what it leaves in [`outcome`], what runs in it before the script in `bootstrap.py`.
//!
//! A script finds its input on stdin (empty where there is none), `CALLER_ID`, `CONTEXT_ID` and `JOB_ID` as
//! variables, and these and the job's `env_vars` as its environment, besides `PATH`, `LANG`, `HOME` and `TMPDIR`,
//! which are its folder, and `MESHWORK_JOB`, by which the command knows that it is within a job. Where the job belongs to
//! a trace, `TRACEPARENT` and `TRACESTATE` (W3C) are there as well. Its result is the variable `result`: text and bytes as they are, anything
//! else as JSON. If it sets none, the result is what it printed, as in Hero. With `progress(fraction,
//! message=None)` it says how far it is, from 0 to 1. With `submit(script, *, type=None, input=None, priority=None,
//! delay=None, retries=None, timeout=None, key=None, group=None, env=None)` it gets a child, and its id
//! ([`requests`]).
//!
//! When its time is over, and when somebody asks it to stop, the whole process group gets SIGTERM, as service
//! managers do it, and the script has the run's grace to put things in order, by a handler that it has set
//! for the signal. When the script has ended, when the grace is over, and at once when the job is this
//! worker's no more, all that it started is killed, also what left the process group. When the worker itself is
//! killed, so are its scripts. Both is the work of the launcher in [`sandbox`](super::sandbox). In programs that
//! do not call [`init`](super::init) the interpreter itself learns from [`lifeline`] that the worker is gone, and
//! what left the process group is not reached.

mod capture;
mod check;
mod child;
mod interpreter;
mod lifeline;
mod outcome;
mod progress;
mod requests;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::log::Stream;
use super::workdir::{self, Folder};
use super::{Run, Runner, StopReason};
use capture::Capture;
pub(super) use check::check;
use child::Child;
use progress::Reports;
use requests::Requests;

/// How long the last output may take to come in once the run's processes are killed: only one that could not
/// be killed can hold it open longer.
const DRAIN: Duration = Duration::from_secs(1);

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
        Box::pin(async move {
            // A task of its own, so that a run that is dropped still ends in order.
            let dropped = CancellationToken::new();
            let _drop_guard = dropped.clone().drop_guard();
            let whole = async move {
                execute(&interpreter, run, &dropped)
                    .await
                    .unwrap_or_else(Report::failed)
            };
            let task = tokio::spawn(whole.in_current_span());
            task.await.unwrap_or_else(|error| {
                let message = format!("the Python runner broke off: {error}");
                Report::failed(Failure::new(FailureKind::Script, message))
            })
        })
    }
}

/// Why the wait for a script is over.
enum End {
    Exited,
    Deadline,
    Stopped,
}

async fn execute(
    interpreter: &OnceCell<PathBuf>,
    run: Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let permanent = |message: String| Failure::new(FailureKind::Permanent, message);
    let interpreter = interpreter.get_or_try_init(get_ready).await;
    let interpreter = interpreter.map_err(|error| permanent(error.to_string()))?;
    let (job, log) = (Arc::clone(&run.job), run.log.clone());
    let laid_out = blocking(move || {
        let folder = Folder::with(&job.script)?;
        Ok((folder, stdin(job.input.as_deref())?))
    });
    let unready = |error| cannot("lay out the script and its input", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let reports = Reports::listen(folder.progress(), log.clone()).map_err(unready)?;
    let requests = Requests::listen(folder.root(), run.submitter.clone()).map_err(unready)?;
    let mut child = start(interpreter, &run, &folder, input)?;
    let (Some(stdout), Some(stderr)) = (child.stdout(), child.stderr()) else {
        return Err(permanent("the script's output was not set up".to_owned()));
    };
    let mut stdout = Capture::whole_of(stdout, log.writer(Stream::Stdout));
    let mut stderr = Capture::log_of(stderr, log.writer(Stream::Stderr));
    let end = wait(&child, &run, dropped).await;
    drop(requests);
    let status = child
        .end()
        .await
        .map_err(|error| cannot("wait for the script", &error))?;
    let end = end.map_err(|error| cannot("wait for the script", &error))?;
    let drained = async { tokio::join!(stdout.ended(), stderr.ended()) };
    // Over time, what has come in so far counts.
    let _ = tokio::time::timeout(DRAIN, drained).await;
    reports.end().await;
    let report = blocking(move || Ok(report(end, status, &folder, stdout, stderr))).await;
    report.map_err(|error| cannot("read the script's outcome", &error))
}

/// Waits until the script has ended, or is to be killed.
async fn wait(child: &Child, run: &Run, dropped: &CancellationToken) -> io::Result<End> {
    let mut ended = pin!(child.ended());
    let end = tokio::select! {
        ended = &mut ended => return ended.map(|()| End::Exited),
        () = dropped.cancelled() => return Ok(End::Stopped),
        () = tokio::time::sleep_until(run.deadline) => End::Deadline,
        reason = run.stop.stopped() => match reason {
            StopReason::Requested => End::Stopped,
            StopReason::Lost => return Ok(End::Stopped),
        },
    };
    if !run.grace.is_zero() {
        child.terminate();
        tokio::select! {
            ended = &mut ended => ended?,
            () = tokio::time::sleep(run.grace) => {}
            () = run.stop.lost() => {}
            () = dropped.cancelled() => {}
        }
    }
    Ok(end)
}

/// Finds the interpreter, and puts in order what killed workers left.
async fn get_ready() -> Result<PathBuf, interpreter::InterpreterError> {
    let swept = blocking(|| {
        workdir::sweep(&std::env::temp_dir());
        Ok(())
    });
    let (found, _) = tokio::join!(interpreter::find(), swept);
    found
}

/// The input as a file without a name. A pipe would have to be filled while the script runs, and one whose
/// worker is killed meanwhile would take the part that it got for the whole.
fn stdin(input: Option<&[u8]>) -> io::Result<File> {
    let Some(input) = input else {
        return File::open("/dev/null");
    };
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

fn start(interpreter: &Path, run: &Run, folder: &Folder, input: File) -> Result<Child, Failure> {
    Child::start(interpreter, run, folder, input).map_err(|error| {
        let mut failure = cannot("start Python", &error);
        // A NUL in an id or a variable, or more of them than the system takes.
        if matches!(
            error.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong
        ) {
            failure.kind = FailureKind::Permanent;
        }
        failure
    })
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Script, format!("cannot {what}: {error}"))
}

/// Reads what is left of the run, and removes its folder.
fn report(
    end: End,
    status: ExitStatus,
    folder: &Folder,
    stdout: Capture,
    stderr: Capture,
) -> Report {
    let mut stdout = stdout.finish();
    let result = match end {
        End::Exited => outcome::result(folder.outcome(), status, &mut stdout),
        End::Deadline => Err(Failure::timeout()),
        End::Stopped => super::stopped().result,
    };
    Report {
        result,
        stdout: stdout.log,
        stderr: stderr.finish().log,
    }
    .bounded()
}

/// Work with files, which may take its time, off the threads that everything else needs.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
