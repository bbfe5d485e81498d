//! The workers of a fleet: real processes, some of them with a clock that is wrong by a minute.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::chaos::ChaosError;

/// Long enough for a machine that is busy with other things to renew it, so that no lease ends without a
/// trouble that explains it.
pub(in crate::chaos) const LEASE: Duration = Duration::from_secs(3);
/// Jobs at a time in each worker.
const CONCURRENCY: usize = 4;
/// How long a worker may take to say that it listens.
const START: Duration = Duration::from_secs(60);
/// Between two looks whether it does.
const LOOK: Duration = Duration::from_millis(20);
/// By how much each worker's clock is wrong, in turn.
const CLOCKS: [&str; 3] = ["+0s", "+60s", "-60s"];

/// How long a worker may take to stop in order: its grace, and the time to hand back what is left.
const STOP: Duration = Duration::from_secs(60);

/// What all workers have in common.
pub(in crate::chaos) struct Quarters<'a> {
    pub(in crate::chaos) binary: &'a Path,
    /// Where their outputs go: `worker-N.out` and `worker-N.err`, the latter of all that had this number.
    pub(in crate::chaos) dir: &'a Path,
    /// The types of scripts that they run, as the command takes them.
    pub(in crate::chaos) types: &'a str,
    /// Where the data is, the interpreter, and the like.
    pub(in crate::chaos) environment: Vec<(&'static str, OsString)>,
    /// How long a job is a worker's without a renewal.
    pub(in crate::chaos) lease: Duration,
    /// The library that makes a clock wrong; without it all clocks are right.
    pub(in crate::chaos) faketime: Option<&'a Path>,
}

/// Lets time pass in which no worker may end by itself.
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
        let mut command = Command::new(quarters.binary);
        command.args(["worker", "--json", "--type", quarters.types]);
        command.args(["--lease", &quarters.lease.as_secs().to_string()]);
        command.args(["--concurrency", &CONCURRENCY.to_string()]);
        command.current_dir(quarters.dir).kill_on_drop(true);
        command.env_remove("REDIS_URL").env_remove("MESHWORK_DATA");
        command.envs(
            quarters
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
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

    /// Waits until it has said that it listens.
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

    /// The number of its process.
    pub(in crate::chaos) fn pid(&self) -> Result<u32, ChaosError> {
        let gone = || ChaosError::Ended {
            program: self.name(),
            status: "nobody knows how".to_owned(),
            said: self.said(),
        };
        self.child.id().ok_or_else(gone)
    }

    /// Fails if it has ended by itself.
    pub(in crate::chaos) fn is_there(&mut self) -> Result<(), ChaosError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(Ok(status))),
            Err(error) => Err(self.ended(Err(error))),
        }
    }

    /// `kill -9`, and another one in its place.
    pub(in crate::chaos) async fn replace(
        &mut self,
        quarters: &Quarters<'_>,
    ) -> Result<(), ChaosError> {
        self.kill().await?;
        self.start_again(quarters)
    }

    /// `kill -9`; returns when the process has gone.
    pub(in crate::chaos) async fn kill(&mut self) -> Result<(), ChaosError> {
        self.is_there()?;
        let killed = self.child.kill().await;
        killed.map_err(ChaosError::io("to kill a worker"))
    }

    /// Another one in the place of one that was killed.
    pub(in crate::chaos) fn start_again(
        &mut self,
        quarters: &Quarters<'_>,
    ) -> Result<(), ChaosError> {
        *self = Self::start(quarters, self.number)?;
        Ok(())
    }

    /// SIGTERM; returns when it has ended in order.
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

    /// Returns when it ends.
    async fn ends(&mut self) -> ChaosError {
        let status = self.child.wait().await;
        self.ended(status)
    }

    /// SIGSTOP or SIGCONT.
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

    /// The end of its stderr.
    fn said(&self) -> String {
        const SAID: usize = 4096;
        let said = fs::read(self.stdout.with_extension("err")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(SAID)..]).into_owned()
    }
}
