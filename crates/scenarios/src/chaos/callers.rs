//! Callers: processes of the real command that are started one after the other by several tasks, and may be killed at
//! any moment. Their output goes directly to files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::ChaosError;
use super::fleet::troop::Quarters;

/// The callers of a play, and those of their processes that run.
pub(super) struct Callers {
    binary: PathBuf,
    pub(super) dir: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    running: Mutex<BTreeSet<u32>>,
}

/// Files of a call.
pub(super) struct Files<'a> {
    /// Output: what is written is appended.
    pub(super) stdout: &'a Path,
    /// Errors, likewise.
    pub(super) stderr: &'a Path,
}

impl Callers {
    pub(super) fn new(quarters: &Quarters<'_>) -> Self {
        Self {
            binary: quarters.binary.to_owned(),
            dir: quarters.dir.to_owned(),
            environment: quarters.environment.clone(),
            running: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills a process of the callers with `kill -9`, if there is one.
    pub(super) fn kill(&self, random: &mut StdRng) -> Option<u32> {
        let running = self.running();
        let at = random.random_range(0..running.len().max(1));
        let process = *running.iter().nth(at)?;
        // The process is not waited for while it is listed, so its id cannot belong to another one.
        kill_process(Pid::from_raw(process.cast_signed())?, Signal::KILL).ok()?;
        Some(process)
    }

    /// Runs the command, with `input` on stdin. Returns its exit status.
    pub(super) async fn call(
        &self,
        arguments: &[String],
        input: &str,
        files: Files<'_>,
        most: Duration,
    ) -> Result<ExitStatus, ChaosError> {
        let stdin = files.stdout.with_extension("stdin");
        fs::write(&stdin, input).map_err(ChaosError::io("an input"))?;
        let open = |path: &Path| {
            let file = File::options().append(true).create(true).open(path);
            file.map_err(ChaosError::io("the output of a caller"))
        };
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(&self.dir)
            .env_remove("REDIS_URL")
            .env_remove("MESHWORK_DATA")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(File::open(&stdin).map_err(ChaosError::io("an input"))?)
            .stdout(Stdio::from(open(files.stdout)?))
            .stderr(Stdio::from(open(files.stderr)?))
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(ChaosError::io("a caller"))?;
        let process = child.id().unwrap_or_default();
        self.running().insert(process);
        let ended = tokio::time::timeout(most, child.wait()).await;
        self.running().remove(&process);
        match ended {
            Ok(status) => status.map_err(ChaosError::io("a caller")),
            Err(_) => Err(ChaosError::Stuck {
                program: arguments.join(" "),
                what: "ended",
                seconds: most.as_secs(),
                said: fs::read_to_string(files.stderr).unwrap_or_default(),
            }),
        }
    }
}
