//! A fleet: three workers on a server, jobs that a client submits one by one, and troubles with processes, servers
//! and clocks. The script of each job records its start outside of the store; the harness records each trouble. In
//! the end every acknowledged job has exactly one correct result. A trouble of its worker or of the server explains
//! each start beyond a job's first.

pub(super) mod ledger;
mod store;
mod submit;
pub(super) mod troop;
pub(super) mod troubles;

use std::fmt;
use std::fs;
use std::path::PathBuf;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::ChaosError;
use ledger::Judged;
use meshwork_test_servers::servers::{Tool, find};
use store::Store;
use submit::Submitted;
use troop::{Member, Quarters};
use troubles::Troubles;

/// Number of workers of the fleet.
const WORKERS: usize = 3;

/// Records its start and its worker, works for a moment, and returns its id reversed. The parent of the script is the
/// launcher, whose parent is the worker. If the worker is dead, the launcher is about to end the script.
const SCRIPT: &str = r#"
import os, time

def of(pid, name):
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()

try:
    worker = of(os.getppid(), "stat").rpartition(")")[2].split()[1]
    alive = of(worker, "comm").strip() == "meshwork"
except OSError:
    alive = False
if not alive:
    time.sleep(60)
tally = os.open(os.environ["TALLY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(tally, f"{JOB_ID} {worker} {time.monotonic_ns()}\n".encode())
time.sleep(0.05)
result = JOB_ID[::-1]
"#;

/// Store of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A redis-server that writes each command to disk before it answers.
    Server,
    /// A master, its replica and sentinels; the client waits for the replica (`WAIT 1`).
    Failover,
    /// The same without waiting. Its losses are measured, and nothing is promised.
    Unconfirmed,
}

impl Ground {
    /// All stores.
    pub const ALL: [Self; 3] = [Self::Server, Self::Failover, Self::Unconfirmed];

    /// Returns the name of the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "fleet",
            Self::Failover => "failover",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Store of the jobs.
    pub ground: Ground,
    /// Number of troubles.
    pub troubles: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
}

/// Result of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Store of the jobs.
    pub ground: Ground,
    /// Number of jobs that the client tried to submit.
    pub submitted: usize,
    /// Number of jobs whose storage was acknowledged.
    pub acknowledged: usize,
    /// Acknowledged jobs without exactly one correct result, with the reason.
    pub lost: Vec<String>,
    /// Number of starts beyond the first of each job.
    pub twice: u64,
    /// Number of these that a trouble explains.
    pub permitted: u64,
    /// Starts that no trouble explains.
    pub unexplained: Vec<String>,
    /// True if two of three workers had a clock that was wrong by a minute.
    pub wrong_clocks: bool,
}

impl Report {
    /// Returns true if all promises hold. Without confirmation a failover may lose jobs that had not reached the
    /// replica.
    #[must_use]
    pub fn holds(&self) -> bool {
        let kept = self.lost.is_empty() || self.ground == Ground::Unconfirmed;
        kept && self.unexplained.is_empty() && self.acknowledged > 0
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!({
            "scenario": self.ground.name(),
            "submitted": self.submitted,
            "acknowledged": self.acknowledged,
            "lost": self.lost,
            "run_twice": self.twice,
            "permitted": self.permitted,
            "unexplained": self.unexplained,
            "wrong_clocks": self.wrong_clocks,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, lost) = (self.ground.name(), self.lost.len());
        let Self {
            submitted,
            acknowledged,
            twice,
            permitted,
            ..
        } = self;
        write!(
            f,
            "{name}: submitted {submitted}, acknowledged {acknowledged}, lost {lost}, "
        )?;
        write!(f, "run twice {twice}, of these permitted {permitted}")?;
        for line in self.lost.iter().chain(&self.unexplained).take(10) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Plays until there have been enough troubles and all jobs have ended.
///
/// # Errors
/// This machine lacks a program, a program ends by itself or gets stuck, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-fleet-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let python = find(Tool::Python).ok_or(ChaosError::Missing(Tool::Python.program()))?;
    let mut store = match plan.ground {
        Ground::Server => Store::single()?,
        Ground::Failover => Store::watched(true).await?,
        Ground::Unconfirmed => Store::watched(false).await?,
    };
    let faketime = find(Tool::Faketime);
    let quarters = Quarters {
        binary: &plan.binary,
        dir: dir.path(),
        types: "python",
        more: &[],
        lease: troop::LEASE,
        environment: vec![
            ("REDIS_URL", store.url().into()),
            ("MESHWORK_PYTHON", python.into()),
        ],
        faketime: faketime.as_deref(),
    };
    let mut troop = Vec::new();
    for number in 0..WORKERS {
        troop.push(Member::start(&quarters, number)?);
    }
    for member in &mut troop {
        member.listens().await?;
    }
    let tally = dir.path().join("tally");
    let submitting = Submitted::start(store.submit_url(), tally.clone()).await?;
    let mut troubles = Troubles::new(StdRng::seed_from_u64(plan.seed));
    for _ in 0..plan.troubles {
        troubles.make(&mut store, &mut troop, &quarters).await?;
    }
    let (submitted, acknowledged, lost) = submitting.stop_and_count().await?;
    let tally = fs::read_to_string(tally).map_err(ChaosError::io("the tally"))?;
    let Judged {
        twice,
        permitted,
        unexplained,
    } = ledger::judge(&ledger::starts(&tally)?, &troubles.happened);
    Ok(Report {
        ground: plan.ground,
        submitted,
        acknowledged,
        lost,
        twice,
        permitted,
        unexplained,
        wrong_clocks: faketime.is_some(),
    })
}
