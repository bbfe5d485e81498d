//! A coordinator: a process of `meshwork supervisor` that serves one context, and the damaged one.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Child;

use super::damage::BLOCKED;
use crate::chaos::ChaosError;
use crate::chaos::fleet::troop::Quarters;

/// Timeout of a coordinator until it is ready.
const START: Duration = Duration::from_secs(60);
/// Polling interval for that.
const LOOK: Duration = Duration::from_millis(20);

/// One coordinator, killed when dropped.
pub(super) struct Daemon {
    context: u32,
    child: Child,
    stderr: PathBuf,
}

impl Daemon {
    /// Starts a coordinator. Returns when it is ready.
    pub(super) async fn start(quarters: &Quarters<'_>, context: u32) -> Result<Self, ChaosError> {
        let stdout = quarters.dir.join(format!("coordinator-{context}.out"));
        let stderr = quarters.dir.join(format!("coordinator-{context}.err"));
        let out = File::create(&stdout).map_err(ChaosError::io("a coordinator's output"))?;
        let err = File::options().append(true).create(true).open(&stderr);
        let err = err.map_err(ChaosError::io("a coordinator's output"))?;
        let mut command = quarters.command();
        command
            .args(["supervisor", "--json", "--context"])
            .arg(format!("{context},{BLOCKED}"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        let child = command.spawn().map_err(ChaosError::io("a coordinator"))?;
        let mut daemon = Self {
            context,
            child,
            stderr,
        };
        let until = Instant::now() + START;
        while !fs::read_to_string(&stdout).is_ok_and(|said| said.contains("ready")) {
            match tokio::time::timeout(LOOK, daemon.child.wait()).await {
                Ok(status) => return Err(daemon.ended(&format!("{status:?}"))),
                Err(_) if Instant::now() > until => {
                    return Err(ChaosError::Stuck {
                        program: daemon.name(),
                        what: "started",
                        seconds: START.as_secs(),
                        said: daemon.said(),
                    });
                }
                Err(_) => {}
            }
        }
        Ok(daemon)
    }

    /// Kills the coordinator with `kill -9`, and starts another one for its context.
    pub(super) async fn replace(&mut self, quarters: &Quarters<'_>) -> Result<(), ChaosError> {
        self.kill().await?;
        *self = Self::start(quarters, self.context).await?;
        Ok(())
    }

    /// Kills the coordinator with `kill -9`; fails if it has ended by itself.
    pub(super) async fn kill(&mut self) -> Result<(), ChaosError> {
        match self.child.try_wait() {
            Ok(None) => {}
            status => return Err(self.ended(&format!("{status:?}"))),
        }
        let killed = self.child.kill().await;
        killed.map_err(ChaosError::io("to kill a coordinator"))
    }

    fn name(&self) -> String {
        format!("supervisor --context {}", self.context)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    fn ended(&self, status: &str) -> ChaosError {
        ChaosError::Ended {
            program: self.name(),
            status: status.to_owned(),
            said: self.said(),
        }
    }
}
