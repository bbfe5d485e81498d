//! A process that serves for a whole scenario. Its output goes to files; it is killed when dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::ChaosError;

/// Timeout of a process until it is ready.
const START: Duration = Duration::from_secs(60);
/// Polling interval for that.
const LOOK: Duration = Duration::from_millis(20);
/// Timeout of an orderly stop.
const STOP: Duration = Duration::from_secs(60);
/// Length of a process' stderr in an error, in bytes: its end.
const SAID: usize = 4096;

/// A running process.
pub(in crate::chaos) struct Process {
    name: String,
    child: Child,
    stdout: PathBuf,
}

impl Process {
    /// Starts a process, whose files in `dir` are named after it. Each start empties the file of stdout, and appends to that
    /// of stderr.
    pub(in crate::chaos) fn start(
        mut command: Command,
        dir: &Path,
        name: &str,
    ) -> Result<Self, ChaosError> {
        let stdout = dir.join(format!("{name}.out"));
        let stderr = stdout.with_extension("err");
        let out = File::create(&stdout).map_err(ChaosError::io(name))?;
        let err = File::options().append(true).create(true).open(&stderr);
        let err = err.map_err(ChaosError::io(name))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.kill_on_drop(true).spawn();
        Ok(Self {
            name: name.to_owned(),
            child: child.map_err(ChaosError::io(name))?,
            stdout,
        })
    }

    /// Waits until the process has printed `word`.
    pub(in crate::chaos) async fn says(&mut self, word: &str) -> Result<(), ChaosError> {
        let until = Instant::now() + START;
        while !fs::read_to_string(&self.stdout).is_ok_and(|said| said.contains(word)) {
            match tokio::time::timeout(LOOK, self.child.wait()).await {
                Ok(status) => return Err(self.ended(status)),
                Err(_) if Instant::now() > until => return Err(self.stuck("started", START)),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Fails if the process has ended by itself.
    pub(in crate::chaos) fn is_there(&mut self) -> Result<(), ChaosError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(Ok(status))),
            Err(error) => Err(self.ended(Err(error))),
        }
    }

    /// Kills the process with `kill -9`. Fails if it has ended by itself.
    pub(in crate::chaos) async fn kill(&mut self) -> Result<(), ChaosError> {
        self.is_there()?;
        let killed = self.child.kill().await;
        killed.map_err(ChaosError::io(&*self.name))
    }

    /// Sends SIGTERM, and waits for an orderly end.
    pub(in crate::chaos) async fn stop(&mut self) -> Result<(), ChaosError> {
        self.signal(Signal::TERM)?;
        match tokio::time::timeout(STOP, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(status) => Err(self.ended(status)),
            Err(_) => Err(self.stuck("stopped", STOP)),
        }
    }

    /// Sends a signal.
    pub(in crate::chaos) fn signal(&self, signal: Signal) -> Result<(), ChaosError> {
        let pid = self.child.id().unwrap_or_default();
        let pid = Pid::from_raw(pid.cast_signed());
        let sent = pid.map_or(Ok(()), |pid| kill_process(pid, signal));
        sent.map_err(|error| ChaosError::io(&*self.name)(error.into()))
    }

    fn ended(&self, status: std::io::Result<ExitStatus>) -> ChaosError {
        ChaosError::Ended {
            program: self.name.clone(),
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            said: self.said(),
        }
    }

    fn stuck(&self, what: &'static str, waited: Duration) -> ChaosError {
        ChaosError::Stuck {
            program: self.name.clone(),
            what,
            seconds: waited.as_secs(),
            said: self.said(),
        }
    }

    /// Returns the end of its stderr.
    fn said(&self) -> String {
        let said = fs::read(self.stdout.with_extension("err")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(SAID)..]).into_owned()
    }
}
