//! A process of the command `meshwork`, whose output goes to files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::ChaosError;
use super::ground::Ground;

/// Length of a program's stderr in an error, in bytes: its end.
const MAX_ERROR_OUTPUT: usize = 4096;

/// Polling interval for a program's output.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running process of the command, killed when dropped.
pub(super) struct Program {
    name: String,
    arguments: Vec<String>,
    child: Child,
    stderr: PathBuf,
    /// File of its stdout.
    pub(super) stdout: PathBuf,
}

impl Program {
    /// Starts the program; `name` is the prefix of its files. Each start empties the file of stdout, and appends to
    /// that of stderr.
    pub(super) fn start(
        ground: &Ground,
        name: String,
        arguments: Vec<String>,
    ) -> Result<Self, ChaosError> {
        let stdout = ground.file(&format!("{name}.out"));
        let stderr = ground.file(&format!("{name}.err"));
        let mut command = ground.command();
        let started = spawn(command.args(&arguments), &stdout, &stderr);
        let child = started.map_err(ChaosError::io(&*name))?;
        Ok(Self {
            name,
            arguments,
            child,
            stderr,
            stdout,
        })
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the program has printed `word`.
    pub(super) async fn wait_for_output(
        &mut self,
        word: &'static str,
        wait: Duration,
    ) -> Result<(), ChaosError> {
        let deadline = Instant::now() + wait;
        while !fs::read_to_string(&self.stdout).is_ok_and(|output| output.contains(word)) {
            if let Some(status) = self.ended_within(POLL_INTERVAL).await? {
                return Err(self.ended(status));
            }
            if Instant::now() > deadline {
                return Err(self.stuck("started", wait));
            }
        }
        Ok(())
    }

    /// Kills the program, and starts it again with the same arguments. Fails if it had ended before.
    pub(super) async fn kill_and_start_again(&mut self, ground: &Ground) -> Result<(), ChaosError> {
        if let Some(status) = self.child.try_wait().map_err(ChaosError::io(&*self.name))? {
            return Err(self.ended(status));
        }
        self.child
            .kill()
            .await
            .map_err(ChaosError::io(&*self.name))?;
        *self = Self::start(ground, self.name.clone(), self.arguments.clone())?;
        Ok(())
    }

    /// Returns its exit status if it ends within `wait`.
    pub(super) async fn ended_within(
        &mut self,
        wait: Duration,
    ) -> Result<Option<ExitStatus>, ChaosError> {
        match timeout(wait, self.child.wait()).await {
            Ok(status) => Ok(Some(status.map_err(ChaosError::io(&*self.name))?)),
            Err(_) => Ok(None),
        }
    }

    /// Returns the error for a program that ended unexpectedly.
    pub(super) fn ended(&self, status: ExitStatus) -> ChaosError {
        let (program, said) = (self.command_line(), self.stderr_tail());
        ChaosError::Ended {
            program,
            status: status.to_string(),
            said,
        }
    }

    /// Returns the error for a program that has not done `what` in time.
    pub(super) fn stuck(&self, what: &'static str, waited: Duration) -> ChaosError {
        let (program, said) = (self.command_line(), self.stderr_tail());
        ChaosError::Stuck {
            program,
            what,
            seconds: waited.as_secs(),
            said,
        }
    }

    /// Returns the end of its stderr.
    fn stderr_tail(&self) -> String {
        let said = fs::read(&self.stderr).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(MAX_ERROR_OUTPUT)..]).into_owned()
    }

    /// Returns the arguments up to `--each`, which has many files.
    fn command_line(&self) -> String {
        let words = self.arguments.iter().take_while(|word| *word != "--each");
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

fn spawn(command: &mut Command, stdout: &Path, stderr: &Path) -> io::Result<Child> {
    let stderr = File::options().append(true).create(true).open(stderr)?;
    command
        .stdin(Stdio::null())
        .stdout(File::create(stdout)?)
        .stderr(stderr)
        .spawn()
}
