//! The workers of the scenario: real processes, killed and replaced.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::process::{Child, Command};

use super::ledger::Kills;
use super::{Plan, monotonic_ns};
use crate::chaos::ChaosError;

/// Number of workers at a time.
const WORKERS: usize = 3;

/// All workers, and the settings for their restart.
pub(super) struct Troop<'a> {
    plan: &'a Plan,
    dir: &'a Path,
    url: String,
    tally: &'a Path,
    members: Vec<Child>,
    kills: Kills,
}

impl<'a> Troop<'a> {
    pub(super) fn start(
        plan: &'a Plan,
        dir: &'a Path,
        url: String,
        tally: &'a Path,
    ) -> Result<Self, ChaosError> {
        let mut troop = Self {
            plan,
            dir,
            url,
            tally,
            members: Vec::new(),
            kills: Kills::new(),
        };
        for _ in 0..WORKERS {
            let member = troop.member()?;
            troop.members.push(member);
        }
        Ok(troop)
    }

    fn member(&self) -> Result<Child, ChaosError> {
        let said = File::options().append(true).create(true).open(self.said());
        let (program, first) = &self.plan.worker;
        Command::new(program)
            .args(first)
            .arg(&self.url)
            .arg(self.tally)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.map_err(ChaosError::io("a worker's output"))?)
            .kill_on_drop(true)
            .spawn()
            .map_err(ChaosError::io("a worker"))
    }

    fn said(&self) -> std::path::PathBuf {
        self.dir.join("workers.err")
    }

    /// Waits for a time in which no worker may end by itself.
    pub(super) async fn peace(&mut self, time: Duration) -> Result<(), ChaosError> {
        let said = self.said();
        let ends = self.members.iter_mut().map(|it| Box::pin(it.wait()));
        match tokio::time::timeout(time, futures_util::future::select_all(ends)).await {
            Ok((status, ..)) => Err(ChaosError::Ended {
                program: "a worker".to_owned(),
                status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
                said: std::fs::read_to_string(said).unwrap_or_default(),
            }),
            Err(_) => Ok(()),
        }
    }

    /// Kills a random worker with `kill -9`, and starts another one.
    pub(super) async fn kill(&mut self, random: &mut impl Rng) -> Result<(), ChaosError> {
        let victim = random.random_range(0..self.members.len());
        let next = self.member()?;
        let mut old = std::mem::replace(&mut self.members[victim], next);
        self.end_one(&mut old).await
    }

    /// Kills all workers. Returns the times of all kills of the play.
    pub(super) async fn end(mut self) -> Result<Kills, ChaosError> {
        for mut member in std::mem::take(&mut self.members) {
            self.end_one(&mut member).await?;
        }
        Ok(self.kills)
    }

    /// Kills one worker. It surely runs until the moment before the signal, which is noted.
    async fn end_one(&mut self, child: &mut Child) -> Result<(), ChaosError> {
        if let Some(pid) = child.id() {
            self.kills.insert(pid, Duration::from_nanos(monotonic_ns()));
        }
        let killed = child.kill().await;
        killed.map_err(ChaosError::io("to kill a worker"))
    }
}
