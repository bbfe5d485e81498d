//! The directory of a scenario: the inputs, the script, the records of its runs, and the data directory or the
//! server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use super::count::Count;
use super::{ChaosError, Plan, Scenario, inputs};
use meshwork_test_servers::servers::{RealServer, Tool, find};

/// Lease that returns the jobs of a killed worker soon, and that a busy machine can renew in time.
pub(super) const LEASE: Duration = Duration::from_secs(1);

/// Number of jobs at a time in each process.
pub(super) const CONCURRENCY: usize = 4;

/// Appends its input to the file that counts the runs, and returns the input reversed.
const SCRIPT: &str = r#"
import os, sys

name = sys.stdin.read()
tally = os.open(os.environ["TALLY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(tally, (name + "\n").encode())
result = name[::-1]
"#;

pub(super) struct Ground {
    pub(super) scenario: Scenario,
    binary: PathBuf,
    python: PathBuf,
    server: Option<RealServer>,
    dir: TempDir,
}

impl Ground {
    pub(super) fn new(plan: &Plan, scenario: Scenario) -> Result<Self, ChaosError> {
        let dir = tempfile::Builder::new().prefix("mw-chaos-").tempdir();
        let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
        let python = needed(Tool::Python)?;
        let server = match scenario {
            Scenario::Server => {
                needed(Tool::Redis)?;
                RealServer::redis().start_for("chaos")
            }
            Scenario::Alone | Scenario::Attached => None,
        };
        let ground = Self {
            scenario,
            binary: plan.binary.clone(),
            python,
            server,
            dir,
        };
        ground.write("chaos.py", SCRIPT)?;
        for name in inputs() {
            ground.write(&name, &name)?;
        }
        Ok(ground)
    }

    /// Returns the command, with the scenario's data or server and without the caller's environment.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.current_dir(self.dir.path()).kill_on_drop(true);
        command
            .env("MESHWORK_DATA", self.data())
            // Scripts count their runs in a file outside of their folder.
            .env("MESHWORK_SANDBOX", "open")
            .env_remove("REDIS_URL");
        command.envs(
            self.server
                .as_ref()
                .map(|server| ("REDIS_URL", server.url())),
        );
        command.env("MESHWORK_PYTHON", &self.python);
        command
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the file in which the runs of a batch are counted.
    pub(super) fn tally(&self, batch: usize) -> PathBuf {
        self.file(&format!("tally-{batch}"))
    }

    /// Returns the process that owns the embedded engine, from the lock file.
    pub(super) fn owner(&self) -> Option<u32> {
        let holder = fs::read_to_string(self.data().join("lock")).ok()?;
        holder.split_whitespace().nth(1)?.parse().ok()
    }

    pub(super) fn count(&self, output: &Path, batch: usize) -> Result<Count, ChaosError> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(ChaosError::io(path.display().to_string()))
        };
        Count::of(&read(output)?, &read(&self.tally(batch))?)
    }

    fn data(&self) -> PathBuf {
        self.file("data")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), ChaosError> {
        fs::write(self.file(name), text).map_err(ChaosError::io(name))
    }
}

fn needed(tool: Tool) -> Result<PathBuf, ChaosError> {
    find(tool).ok_or(ChaosError::Missing(tool.program()))
}
