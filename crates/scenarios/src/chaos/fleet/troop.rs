//! The workers of a fleet: real processes, some of them with a clock that is wrong by a minute.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::chaos::ChaosError;

/// Lease that a busy machine can renew in time, so that no lease expires without a trouble that explains it.
pub(in crate::chaos) const LEASE: Duration = Duration::from_secs(3);
/// Number of jobs at a time in each worker.
const CONCURRENCY: usize = 4;
/// Timeout of a worker until it says that it listens.
const START: Duration = Duration::from_secs(60);
/// Polling interval for that.
const LOOK: Duration = Duration::from_millis(20);
/// Error of each worker's clock, in order.
const CLOCKS: [&str; 3] = ["+0s", "+60s", "-60s"];

/// Exit code of a worker that lost its store.
const LOST: i32 = 3;
/// Timeout of an orderly stop: the grace period, and the time to release the remaining jobs.
const STOP: Duration = Duration::from_secs(60);

/// Settings that all workers share.
pub(in crate::chaos) struct Quarters<'a> {
    pub(in crate::chaos) binary: &'a Path,
    /// Directory of the outputs: `worker-N.out`, and `worker-N.err` for all workers that had this number.
    pub(in crate::chaos) dir: &'a Path,
    /// Script types of the workers, as arguments of the command.
    pub(in crate::chaos) types: &'a str,
    /// Further arguments of the workers.
    pub(in crate::chaos) more: &'a [&'a str],
    /// Environment variables, such as the address of the data and the interpreter.
    pub(in crate::chaos) environment: Vec<(&'static str, OsString)>,
    /// Duration of a lease without a renewal.
    pub(in crate::chaos) lease: Duration,
    /// Library that makes clocks wrong; without it all clocks are right.
    pub(in crate::chaos) faketime: Option<&'a Path>,
}

impl Quarters<'_> {
    /// Returns the command, which runs in the directory with this environment, and is killed when dropped.
    pub(in crate::chaos) fn command(&self) -> Command {
        let mut command = Command::new(self.binary);
        command
            .current_dir(self.dir)
            .env_remove("REDIS_URL")
            .env_remove("MESHWORK_DATA")
            // Scripts count their runs in a file outside of their folder.
            .env("MESHWORK_SANDBOX", "open")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        command
    }
}

/// Waits for a time in which no worker may end by itself.
pub(in crate::chaos) async fn peace(
    troop: &mut [Member],
    time: Duration,
) -> Result<(), ChaosError> {
    let ends = troop.iter_mut().map(|member| Box::pin(member.ends()));
    match tokio::time::timeout(time, futures_util::future::select_all(ends)).await {
        Ok((ended, ..)) => Err(ended),
        Err(_) => Ok(()),
    }
}

/// One worker, killed when dropped.
pub(in crate::chaos) struct Member {
    number: usize,
    child: Child,
    stdout: PathBuf,
}

impl Member {
    pub(in crate::chaos) fn start(
        quarters: &Quarters<'_>,
        number: usize,
    ) -> Result<Self, ChaosError> {
        let stdout = quarters.dir.join(format!("worker-{number}.out"));
        let stderr = quarters.dir.join(format!("worker-{number}.err"));
        let out = File::create(&stdout).map_err(ChaosError::io("a worker's output"))?;
        let err = File::options().append(true).create(true).open(&stderr);
        let err = err.map_err(ChaosError::io("a worker's output"))?;
        let mut command = quarters.command();
        command.args(["worker", "--json", "--type", quarters.types]);
        command.args(quarters.more);
        command.args(["--lease", &quarters.lease.as_secs().to_string()]);
        command.args(["--concurrency", &CONCURRENCY.to_string()]);
        if let Some(library) = quarters.faketime {
            command.env("LD_PRELOAD", library);
            command.env("FAKETIME", CLOCKS[number % CLOCKS.len()]);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().map_err(ChaosError::io("a worker"))?;
        Ok(Self {
            number,
            child,
            stdout,
        })
    }

    /// Waits until the worker says that it listens.
    pub(in crate::chaos) async fn listens(&mut self) -> Result<(), ChaosError> {
        let until = Instant::now() + START;
        while !fs::read_to_string(&self.stdout).is_ok_and(|said| said.contains("listening")) {
            match tokio::time::timeout(LOOK, self.child.wait()).await {
                Ok(status) => return Err(self.ended(status)),
                Err(_) if Instant::now() > until => {
                    return Err(ChaosError::Stuck {
                        program: self.name(),
                        what: "started",
                        seconds: START.as_secs(),
                        said: self.said(),
                    });
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the id of its process.
    pub(in crate::chaos) fn pid(&self) -> Result<u32, ChaosError> {
        let gone = || ChaosError::Ended {
            program: self.name(),
            status: "nobody knows how".to_owned(),
            said: self.said(),
        };
        self.child.id().ok_or_else(gone)
    }

    /// Fails if the worker has ended by itself.
    pub(in crate::chaos) fn is_there(&mut self) -> Result<(), ChaosError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(Ok(status))),
            Err(error) => Err(self.ended(Err(error))),
        }
    }

    /// Returns true if the worker has ended.
    pub(in crate::chaos) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the worker with `kill -9`, and starts another one with its number.
    pub(in crate::chaos) async fn replace(
        &mut self,
        quarters: &Quarters<'_>,
    ) -> Result<(), ChaosError> {
        self.kill().await?;
        self.start_again(quarters)
    }

    /// Kills the worker with `kill -9`. Returns when the process has ended.
    pub(in crate::chaos) async fn kill(&mut self) -> Result<(), ChaosError> {
        self.is_there()?;
        let killed = self.child.kill().await;
        killed.map_err(ChaosError::io("to kill a worker"))
    }

    /// Starts another worker with the number of a killed one.
    pub(in crate::chaos) fn start_again(
        &mut self,
        quarters: &Quarters<'_>,
    ) -> Result<(), ChaosError> {
        *self = Self::start(quarters, self.number)?;
        Ok(())
    }

    /// Sends SIGTERM. Returns when the worker has ended in order.
    pub(in crate::chaos) async fn stop(mut self) -> Result<(), ChaosError> {
        self.signal(Signal::TERM)?;
        match tokio::time::timeout(STOP, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(status) => Err(self.ended(status)),
            Err(_) => Err(ChaosError::Stuck {
                program: self.name(),
                what: "stopped",
                seconds: STOP.as_secs(),
                said: self.said(),
            }),
        }
    }

    /// Waits until the worker has ended itself, because its store was lost.
    pub(in crate::chaos) async fn gives_up(&mut self) -> Result<(), ChaosError> {
        match tokio::time::timeout(STOP, self.child.wait()).await {
            Ok(Ok(status)) if status.code() == Some(LOST) => Ok(()),
            Ok(status) => Err(self.ended(status)),
            Err(_) => Err(ChaosError::Stuck {
                program: self.name(),
                what: "ended after it lost its store",
                seconds: STOP.as_secs(),
                said: self.said(),
            }),
        }
    }

    /// Waits for the end of the worker, and returns it as an error.
    async fn ends(&mut self) -> ChaosError {
        let status = self.child.wait().await;
        self.ended(status)
    }

    /// Sends SIGSTOP or SIGCONT.
    pub(in crate::chaos) fn signal(&self, signal: Signal) -> Result<(), ChaosError> {
        let pid = Pid::from_raw(self.pid()?.cast_signed());
        let sent = pid.map_or(Ok(()), |pid| kill_process(pid, signal));
        sent.map_err(|error| ChaosError::io("to signal a worker")(error.into()))
    }

    fn name(&self) -> String {
        format!("worker {}", self.number)
    }

    fn ended(&self, status: std::io::Result<std::process::ExitStatus>) -> ChaosError {
        ChaosError::Ended {
            program: self.name(),
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            said: self.said(),
        }
    }

    /// Returns the end of its stderr.
    fn said(&self) -> String {
        const SAID: usize = 4096;
        let said = fs::read(self.stdout.with_extension("err")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(SAID)..]).into_owned()
    }
}
