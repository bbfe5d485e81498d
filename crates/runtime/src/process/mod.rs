//! Process of a run, for all runtimes that start one. [`Child`] is its process group, [`Capture`] reads its output. It
//! runs in a folder of its own, and inherits only `PATH` from the worker's environment ([`mod@environment`]).
//!
//! Its input is stdin, which is empty without input. Its environment has the job's `env_vars`, `CALLER_ID`,
//! `CONTEXT_ID`, `JOB_ID`, `LANG`, and `HOME` and `TMPDIR` with its folder. `MESHWORK_JOB` tells the command that it
//! runs inside a job, and `MESHWORK_CALLS` names the socket for its actions, or `MESHWORK_CALLS_SOCKET` an inherited one. `MESHWORK_INPUTS` names the file with the results of other jobs, if there are any. `TRACEPARENT`
//! and `TRACESTATE` are set if the job has a trace.
//!
//! After its timeout or a cancel request the process group gets SIGTERM, as from service managers. The script can
//! handle the signal within the run's grace. When the script has ended, when the grace is over, and at once when the
//! lease is lost, all its processes are killed, also those that left the process group. When the worker is killed, so
//! are its scripts. The launcher in [`sandbox`] does both. Programs that do not call
//! [`init`](super::init) have no launcher: processes that left the group survive there, and only Python scripts notice
//! a killed worker ([`mod@lifeline`]).

mod capture;
mod child;
mod environment;
mod exit;
mod lifeline;
mod start;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::sandbox::{Limit, Limits, Usage};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(super) use super::blocking::blocking;
use super::log::Stream;
pub(super) use super::sandbox::Inherited;
use super::sandbox::{Launched, LimitExceeded};
use super::workdir::Folder;
use super::{Run, StopReason, sandbox};
pub(super) use capture::Printed;
use capture::{Capture, OutputLimit};
use child::Child;
#[cfg(feature = "sal")]
pub(super) use environment::INPUTS_VARIABLE;
pub(super) use environment::{environment, own_environment};
pub(super) use exit::{failed, printed, words as exit_words};
pub(super) use lifeline::descriptor as lifeline;
pub(super) use start::{Executable, NamedBy, NotStarted, interpreter_of};

/// Longest wait for the last output after all processes are killed. Only a process that cannot be killed keeps the pipe
/// open.
const DRAIN: Duration = Duration::from_secs(1);

/// Bytes at the end of stderr in which a program describes its error.
const LAST_WORDS: usize = 1024;

/// Error of Python for refused memory.
const MEMORY_ERROR: &str = "MemoryError";

/// Size of the file that a check writes, in bytes: a page, the least that a full disk refuses.
const PROBE_SIZE: usize = 4096;
/// Longest time for a process of a check, which takes milliseconds.
const PROBE_ENDS: Duration = Duration::from_secs(20);

/// Runs a future in its own task, so that a dropped run still ends in order. The token is cancelled then.
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
            let message = format!("the runtime failed: {error}");
            Report::failed(Failure::new(FailureKind::Script, message))
        })
    })
}

/// Returns the orders for the confinement of a run, whose interpreter needs these paths.
pub(super) async fn orders(run: &Run, interpreter: &[PathBuf]) -> Result<sandbox::Orders, Failure> {
    let orders = sandbox::orders(&run.confinement, interpreter).await;
    orders.map_err(|unconfined| match unconfined {
        sandbox::Unconfined::Refused(message) => Failure::new(FailureKind::Permanent, message),
        sandbox::Unconfined::System(error) => {
            NotStarted::of_system("try the sandbox", &error).into()
        }
    })
}

/// Reason why the wait for a process has ended.
pub(super) enum End {
    Exited,
    Deadline,
    Stopped,
    /// The output exceeded its limit.
    Exceeded(LimitExceeded),
}

/// A running process.
pub(super) struct Process {
    child: Child,
    /// See [`Executable::handed`].
    handed: String,
    path: PathBuf,
    named_by: NamedBy,
    stdout: Capture,
    stderr: Capture,
    output: Arc<OutputLimit>,
    orders: sandbox::Orders,
    folder: PathBuf,
    usage: Arc<OnceLock<Usage>>,
}

impl Process {
    /// Starts `program` for the run, confined by `orders`.
    pub(super) fn start(
        program: Executable<'_>,
        run: &Run,
        folder: &Folder,
        inherited: Inherited,
        orders: &sandbox::Orders,
    ) -> Result<Self, NotStarted> {
        // The preparation, such as an installation of packages, may have outlasted the lease.
        if !run.lease.allows_start() {
            let message = "the lease of the job is over".to_owned();
            return Err(NotStarted::Worker(message));
        }
        let handed = program.handed(&run.job.env_vars);
        let mut child = Child::start((program, &handed), folder, inherited, orders)?;
        let (Some(stdout), Some(stderr)) = (child.stdout(), child.stderr()) else {
            let message = "the script's output was not set up".to_owned();
            return Err(NotStarted::Worker(message));
        };
        let output = OutputLimit::new(orders.limits().get(Limit::Output));
        Ok(Self {
            child,
            handed,
            path: program.path.to_owned(),
            named_by: program.named_by,
            stdout: Capture::whole_of(stdout, run.log.writer(Stream::Stdout), &output),
            stderr: Capture::log_of(stderr, run.log.writer(Stream::Stderr), &output),
            output,
            orders: orders.clone(),
            folder: folder.root().to_owned(),
            usage: Arc::clone(&run.usage),
        })
    }

    /// Waits until the process has ended, or has to be killed.
    pub(super) async fn wait(&self, run: &Run, dropped: &CancellationToken) -> End {
        let mut ended = pin!(self.child.ended());
        let end = tokio::select! {
            () = &mut ended => return End::Exited,
            () = dropped.cancelled() => return End::Stopped,
            exceeded = self.output.exceeded() => return End::Exceeded(exceeded),
            () = tokio::time::sleep_until(run.deadline) => End::Deadline,
            reason = run.stop.stopped() => match reason {
                StopReason::Requested => End::Stopped,
                StopReason::Lost => return End::Stopped,
            },
        };
        if !run.grace.is_zero() {
            self.child.terminate();
            tokio::select! {
                () = &mut ended => {}
                () = tokio::time::sleep(run.grace) => {}
                () = run.stop.lost() => {}
                () = dropped.cancelled() => {}
            }
        }
        end
    }

    /// Kills all processes of the run and reads the rest of its output.
    pub(super) async fn end(mut self, end: End) -> Result<Ended, Failure> {
        let unknown = |error| cannot("wait for the script", &error);
        let ending = self.child.end().await.map_err(unknown)?;
        if let Some(usage) = ending.usage {
            // A run has one process.
            let _ = self.usage.set(usage);
        }
        let status = match (ending.launched, &end) {
            (Launched::Ended(status), _) => status,
            (Launched::NotStarted(error), End::Exited) if !ending.has_begun => {
                return Err(
                    NotStarted::of_system("start the launcher of the script", &error).into(),
                );
            }
            (Launched::NotStarted(error), End::Exited) => {
                let (path, handed) = (&self.path, &self.handed);
                return Err(NotStarted::of_program(&error, path, self.named_by, handed).into());
            }
            (Launched::NotConfined(error), End::Exited) => {
                let message = format!("cannot confine the script: {error}");
                return Err(NotStarted::Worker(message).into());
            }
            (Launched::Killed(status), End::Exited) => {
                let how = exit::words(status);
                let message = format!("cannot start the script: its launcher was {how}");
                return Err(NotStarted::Worker(message).into());
            }
            // The run ends for another reason, whatever its status.
            (
                Launched::NotStarted(_) | Launched::NotConfined(_) | Launched::Killed(_),
                End::Deadline | End::Stopped | End::Exceeded(_),
            ) => ExitStatus::default(),
        };
        let drained = async { tokio::join!(self.stdout.ended(), self.stderr.ended()) };
        // After the timeout, the output so far counts.
        let _ = tokio::time::timeout(DRAIN, drained).await;
        Ok(Ended {
            end,
            exceeded: ending.exceeded,
            orders: self.orders,
            folder: self.folder,
            status,
            stdout: self.stdout,
            stderr: self.stderr,
        })
    }
}

/// An ended process.
pub(super) struct Ended {
    end: End,
    exceeded: Option<LimitExceeded>,
    orders: sandbox::Orders,
    folder: PathBuf,
    status: ExitStatus,
    stdout: Capture,
    stderr: Capture,
}

impl Ended {
    /// Returns the report of the run. Calls `result` if the process ended by itself.
    pub(super) fn report(
        self,
        result: impl FnOnce(ExitStatus, &mut Printed) -> Result<Vec<u8>, Failure>,
    ) -> Report {
        let mut stdout = self.stdout.finish();
        let result = match (self.end, self.exceeded) {
            (End::Exceeded(exceeded), _) | (End::Exited, Some(exceeded)) => {
                Err(over_limit(exceeded))
            }
            (End::Exited, None) => {
                let result = result(self.status, &mut stdout);
                result.map_err(|failure| out_of_memory(self.orders.limits(), failure))
            }
            (End::Deadline, _) => Err(Failure::timeout()),
            (End::Stopped, _) => super::stopped().result,
        };
        let stderr = self.stderr.finish().log;
        let hinted = |failure| with_hint(failure, &stderr, &self.orders, &self.folder);
        Report {
            result: result.map_err(hinted),
            stdout: stdout.log,
            stderr,
        }
        .bounded()
    }
}

/// Returns the failure of a run that exceeded a limit.
fn over_limit(exceeded: LimitExceeded) -> Failure {
    let message = exceeded.limit.exceeded(exceeded.value);
    Failure::new(FailureKind::Limit, message)
}

/// Returns the failure of a script. If its sandbox may be the reason, the message ends with a hint.
fn with_hint(
    mut failure: Failure,
    stderr: &[u8],
    orders: &sandbox::Orders,
    folder: &Path,
) -> Failure {
    if failure.kind == FailureKind::Script {
        let last = &stderr[stderr.len().saturating_sub(LAST_WORDS)..];
        let last = String::from_utf8_lossy(last);
        let hint = orders.hint(&failure.message, folder);
        if let Some(hint) = hint.or_else(|| orders.hint(&last, folder)) {
            failure.message.push_str("; ");
            failure.message.push_str(&hint);
        }
    }
    failure
}

/// Returns the failure of a script. If the kernel refused it memory beyond its limit, that is the reason.
fn out_of_memory(limits: &Limits, failure: Failure) -> Failure {
    let limit = Limit::Memory;
    match limits.get(limit) {
        Some(value) if failure.message.starts_with(MEMORY_ERROR) => {
            over_limit(LimitExceeded { limit, value })
        }
        _ => failure,
    }
}

/// Returns the input as an unnamed file in a folder, where a script in the sandbox can open it by `/dev/stdin`. A script could
/// read a part of a pipe as the whole input if the worker was killed meanwhile.
pub(super) fn stdin(folder: &Path, input: Option<&[u8]>) -> io::Result<File> {
    let Some(input) = input else {
        return File::open("/dev/null");
    };
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// Returns the failure for an error of the system, which a retry may not meet.
pub(super) fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Script, format!("cannot {what}: {error}"))
}

/// Checks that processes can be started here: makes the folder of a run, and starts a launcher that ends at once.
pub(super) async fn probe() -> Result<(), NotStarted> {
    let lay_out = || Folder::with(Some(("probe", &[0; PROBE_SIZE]))).map(drop);
    let unready = |error| NotStarted::of_system("lay out a script", &error);
    blocking(lay_out).await.map_err(unready)?;
    if !sandbox::is_on() {
        return Ok(());
    }
    let unready = |error| NotStarted::of_system("start a process", &error);
    let mut command = tokio::process::Command::from(sandbox::probe());
    command.stdin(Stdio::null());
    let ended = async {
        let (child, _own) = sandbox::shielded(|| start_own(command))?;
        child.wait_with_output().await
    };
    let ended = tokio::time::timeout(PROBE_ENDS, ended).await;
    let ended = ended.unwrap_or_else(|error| Err(io::Error::other(error)));
    match ended.map_err(unready)?.status.success() {
        true => Ok(()),
        false => Err(unready(io::Error::other("it failed"))),
    }
}

/// Starts a process of the worker itself, and returns its output.
pub(super) async fn output(command: tokio::process::Command) -> io::Result<Output> {
    let (child, _own) = start_own(command)?;
    child.wait_with_output().await
}

fn start_own(
    mut command: tokio::process::Command,
) -> io::Result<(tokio::process::Child, Option<sandbox::Own>)> {
    command.stdout(Stdio::piped()).kill_on_drop(true);
    sandbox::Own::start(|| command.spawn(), tokio::process::Child::id)
}
