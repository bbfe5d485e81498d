//! Faults that jobs and hosts cause: a job that kills its workers, and a worker that can start no run.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::faults::{Faults, LOOK, Scene};
use super::jobs::{KILLER, KILLS};
use super::{WORKERS, failed};
use crate::chaos::ChaosError;
use crate::chaos::fleet::ledger::What;
use crate::chaos::fleet::troop::{Member, Quarters};
use crate::chaos::fleet::troubles::now;

/// Time for which a sick worker claims jobs: some of its pauses.
const SICK: Duration = Duration::from_secs(4);
/// Longest time until a killer is a dead letter. It waits for jobs that run alone, and for five restarts.
const CONDEMNED: Duration = Duration::from_secs(120);

impl Faults {
    /// Enqueues a job that kills its workers, and replaces these until the job is a dead letter.
    pub(super) async fn killer_job(&mut self, scene: &mut Scene<'_>) -> Result<(), ChaosError> {
        let id = format!("{KILLER}{}", self.happened.len());
        // Jobs of a killed worker may run again before its end is seen here.
        let mut seen = vec![now(); scene.troop.len()];
        let mut owner = scene.store.owner();
        enqueue(&scene.quarters, &id).await?;
        let (until, job) = (Instant::now() + CONDEMNED, JobId::foreign(id.clone()));
        let mut looks = tokio::time::interval(LOOK);
        while Instant::now() < until {
            looks.tick().await;
            let owned = std::mem::replace(&mut owner, scene.store.owner());
            for (at, seen) in seen.iter_mut().enumerate() {
                let process = scene.troop[at].pid();
                let from = std::mem::replace(seen, now());
                if !scene.troop[at].has_ended() {
                    continue;
                }
                let process = process?;
                self.note(What::Killed(process), from);
                scene.troop[at].start_again(&scene.quarters)?;
                scene.troop[at].listens().await?;
                if [owned, owner].contains(&Some(process)) {
                    self.note(What::ServerAway, from);
                }
            }
            // The store may be down meanwhile.
            if let Ok(broker) = scene.store.broker().await
                && let Ok(Some(record)) = broker.inspect(&job).await
                && record.status() == Some(Status::Error)
            {
                return match record.dead.as_deref() {
                    Some("poison") => Ok(()),
                    other => Err(failed(&format!("{id} ended as {other:?}"))),
                };
            }
        }
        Err(failed(&format!(
            "{id} is no dead letter after {CONDEMNED:?}"
        )))
    }

    /// Runs a worker that can start no script, beside the others.
    pub(super) async fn sick_worker(&mut self, scene: &mut Scene<'_>) -> Result<(), ChaosError> {
        let from = now();
        let missing = scene.quarters.dir.join("missing");
        let mut environment = scene.quarters.environment.clone();
        environment.retain(|(name, _)| *name != "TMPDIR");
        environment.push(("TMPDIR", missing.clone().into()));
        let quarters = Quarters {
            environment,
            ..scene.quarters
        };
        let mut sick = Member::start(&quarters, WORKERS)?;
        sick.listens().await?;
        let process = sick.pid()?;
        scene.peace(SICK).await?;
        sick.stop().await?;
        self.note(What::Sick(process), from);
        match fs::exists(missing) {
            Ok(false) => Ok(()),
            _ => Err(failed(&"a sick worker made its folder")),
        }
    }
}

/// Enqueues a job that kills its workers.
async fn enqueue(quarters: &Quarters<'_>, id: &str) -> Result<(), ChaosError> {
    let script = quarters.dir.join("killer.py");
    fs::write(&script, KILLS).map_err(ChaosError::io("the killer's script"))?;
    let mut command = quarters.command();
    command.args(["job", "enqueue", "--id", id]).arg(script);
    let ended = command.stdin(Stdio::null()).output().await;
    let ended = ended.map_err(ChaosError::io("the command"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(ChaosError::Ended {
            program: "job enqueue".to_owned(),
            status: ended.status.to_string(),
            said: String::from_utf8_lossy(&ended.stderr).into_owned(),
        }),
    }
}
