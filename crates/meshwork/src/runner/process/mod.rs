//! The process of a run, for all runtimes that start one: [`Child`] keeps it and all that it starts, [`Capture`] takes
//! in what it prints. It runs in its own folder and process group, and inherits only `PATH` of the worker's
//! environment.
//!
//! It finds its input on stdin (empty where there is none), and in its environment the job's `env_vars`, `CALLER_ID`,
//! `CONTEXT_ID`, `JOB_ID`, `LANG`, `HOME` and `TMPDIR`, which are its folder, and `MESHWORK_JOB`, by which the command
//! knows that it is within a job; `MESHWORK_INPUTS`, a file with the results of the jobs that it depends on, if any; also `TRACEPARENT` and `TRACESTATE` where the job belongs to a trace.
//!
//! After its timeout or a cancel request the process group gets SIGTERM, as from service managers. The script can
//! handle the signal within the run's grace. When the script has ended, when the grace is over, and at once when the
//! lease is lost, all its processes are killed, also those that left the process group. When the worker is killed, so
//! are its scripts. The launcher in [`sandbox`](super::sandbox) does both. Programs that do not call
//! [`init`](super::init) have no launcher: processes that left the group survive there, and only Python scripts notice
//! a killed worker ([`mod@lifeline`]).

mod capture;
mod child;
mod exit;
mod lifeline;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::log::Stream;
use super::workdir::Folder;
use super::{Run, StopReason};
use capture::Capture;
pub(super) use capture::Printed;
use child::Child;
pub(super) use exit::{failed, printed};
pub(super) use lifeline::descriptor as lifeline;

/// Timeout of the last output after the run's processes are killed: only a process that could not be killed keeps the
/// pipe open longer.
const DRAIN: Duration = Duration::from_secs(1);

/// Executes a run in a task of its own, so that a run that is dropped still ends in order. The token is cancelled then.
pub(super) fn in_order<'a, F>(
    run: Run,
    execute: impl FnOnce(Run, CancellationToken) -> F + Send + 'a,
) -> BoxFuture<'a, Report>
where
    F: Future<Output = Result<Report, Failure>> + Send + 'static,
{
    Box::pin(async move {
        let dropped = CancellationToken::new();
        let _drop_guard = dropped.clone().drop_guard();
        let whole = execute(run, dropped);
        let whole = async move { whole.await.unwrap_or_else(Report::failed) };
        let task = tokio::spawn(whole.in_current_span());
        task.await.unwrap_or_else(|error| {
            let message = format!("the runner broke off: {error}");
            Report::failed(Failure::new(FailureKind::Script, message))
        })
    })
}

/// Why the wait for a process is over.
pub(super) enum End {
    Exited,
    Deadline,
    Stopped,
}

/// A process that runs.
pub(super) struct Process {
    child: Child,
    stdout: Capture,
    stderr: Capture,
}

impl Process {
    /// Starts `program` for the run, with `input` as its stdin.
    pub(super) fn start(
        (program, args): (&Path, &[OsString]),
        run: &Run,
        folder: &Folder,
        input: File,
    ) -> Result<Self, Failure> {
        let child = Child::start((program, args), run, folder, input);
        let mut child = child.map_err(|error| {
            let mut failure = cannot("start the script", &error);
            // A NUL in an id or a variable, or more of them than the system takes.
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong
            ) {
                failure.kind = FailureKind::Permanent;
            }
            failure
        })?;
        let (Some(stdout), Some(stderr)) = (child.stdout(), child.stderr()) else {
            let message = "the script's output was not set up";
            return Err(Failure::new(FailureKind::Permanent, message));
        };
        Ok(Self {
            child,
            stdout: Capture::whole_of(stdout, run.log.writer(Stream::Stdout)),
            stderr: Capture::log_of(stderr, run.log.writer(Stream::Stderr)),
        })
    }

    /// Waits until it has ended, or is to be killed.
    pub(super) async fn wait(&self, run: &Run, dropped: &CancellationToken) -> io::Result<End> {
        let mut ended = pin!(self.child.ended());
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
            self.child.terminate();
            tokio::select! {
                ended = &mut ended => ended?,
                () = tokio::time::sleep(run.grace) => {}
                () = run.stop.lost() => {}
                () = dropped.cancelled() => {}
            }
        }
        Ok(end)
    }

    /// Kills all that is left of it and takes in the last of its output.
    pub(super) async fn end(mut self, end: io::Result<End>) -> Result<Ended, Failure> {
        let unknown = |error| cannot("wait for the script", &error);
        let status = self.child.end().await.map_err(unknown)?;
        let end = end.map_err(unknown)?;
        let drained = async { tokio::join!(self.stdout.ended(), self.stderr.ended()) };
        // Over time, what has come in so far counts.
        let _ = tokio::time::timeout(DRAIN, drained).await;
        Ok(Ended {
            end,
            status,
            stdout: self.stdout,
            stderr: self.stderr,
        })
    }
}

/// A process that has ended.
pub(super) struct Ended {
    end: End,
    status: ExitStatus,
    stdout: Capture,
    stderr: Capture,
}

impl Ended {
    /// The report of the run. `result` is called if the process ended by itself.
    pub(super) fn report(
        self,
        result: impl FnOnce(ExitStatus, &mut Printed) -> Result<Vec<u8>, Failure>,
    ) -> Report {
        let mut stdout = self.stdout.finish();
        let result = match self.end {
            End::Exited => result(self.status, &mut stdout),
            End::Deadline => Err(Failure::timeout()),
            End::Stopped => super::stopped().result,
        };
        Report {
            result,
            stdout: stdout.log,
            stderr: self.stderr.finish().log,
        }
        .bounded()
    }
}

/// The input as a file without a name. A pipe would have to be filled while the script runs, and one whose
/// worker is killed meanwhile would take the part that it got for the whole.
pub(super) fn stdin(input: Option<&[u8]>) -> io::Result<File> {
    let Some(input) = input else {
        return File::open("/dev/null");
    };
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// A failure of the system, which another run may not meet.
pub(super) fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Script, format!("cannot {what}: {error}"))
}

/// Work with files, which may take its time, off the threads that everything else needs.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
