//! A coordinator: a process of `meshwork supervisor` that serves one context, and the damaged one.

use super::damage::BLOCKED;
use crate::chaos::ChaosError;
use crate::chaos::fleet::troop::Quarters;
use crate::chaos::process::Process;

/// One coordinator, killed when dropped.
pub(super) struct Daemon {
    context: u32,
    process: Process,
}

impl Daemon {
    /// Starts a coordinator. Returns when it is ready.
    pub(super) async fn start(quarters: &Quarters<'_>, context: u32) -> Result<Self, ChaosError> {
        let mut command = quarters.command();
        command
            .args(["supervisor", "--json", "--context"])
            .arg(format!("{context},{BLOCKED}"));
        let name = format!("coordinator-{context}");
        let mut process = Process::start(command, quarters.dir, &name)?;
        process.says("ready").await?;
        Ok(Self { context, process })
    }

    /// Kills the coordinator with `kill -9`, and starts another one for its context.
    pub(super) async fn replace(&mut self, quarters: &Quarters<'_>) -> Result<(), ChaosError> {
        self.kill().await?;
        *self = Self::start(quarters, self.context).await?;
        Ok(())
    }

    /// Kills the coordinator with `kill -9`; fails if it has ended by itself.
    pub(super) async fn kill(&mut self) -> Result<(), ChaosError> {
        self.process.kill().await
    }
}
