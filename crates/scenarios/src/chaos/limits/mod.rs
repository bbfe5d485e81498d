//! Limits: worker processes whose queues have limits of concurrency and rate, per queue and per key, and jobs with
//! unique names; `kill -9` at random moments. Each run appends its start and its end to a file outside of the store,
//! which is judged. The limits are never exceeded. A killed worker's slot is reused only when its lease has expired,
//! and a unique name never has two jobs. In the end all jobs are done, and all slots are free.

mod jobs;
mod ledger;
mod troop;
mod work;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Broker, Claim, PrefetchLists};
use meshwork_model::keys::hero::JobKeys;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ChaosError;
use jobs::{KEY_SLOTS, SLOTS, Sort, Submitted};
use meshwork_test_servers::servers::{RealServer, Tool};
use troop::Troop;

pub use work::be_worker;

/// Lease that a busy machine can renew in time.
const LEASE: Duration = Duration::from_secs(3);
/// Longest time from one kill to the next …
const SOON: Duration = Duration::from_millis(800);
/// … except after this many, which leave time to run jobs: a job that loses its worker five times ends in error.
const KILLS_IN_A_ROW: u32 = 3;
/// Duration of that time: two leases.
const PEACE: Duration = Duration::from_secs(6);

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Program and arguments of a worker of this scenario. The URL of the server and the file for its records are
    /// appended.
    pub worker: (PathBuf, Vec<String>),
    /// Number of kills.
    pub kills: u32,
    /// Seed for the choice of moments, victims and jobs. The timing differs from run to run.
    pub seed: u64,
}

/// Result of a play.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of stored jobs.
    pub jobs: usize,
    /// Number of starts.
    pub starts: usize,
    /// Number of runs that a kill ended.
    pub killed: usize,
    /// Greatest number of running jobs in the limited queue.
    pub most: usize,
    /// Jobs that were not done in the end.
    pub lost: Vec<String>,
    /// Violations of limits and of unique names, and runs without an end.
    pub over: Vec<String>,
    /// Slots, leases and names that were not free in the end.
    pub leaked: Vec<String>,
    /// Number of killed workers.
    pub kills: u32,
}

impl Report {
    /// Returns true if all limits held, were reached, and are free again.
    #[must_use]
    pub fn holds(&self) -> bool {
        let right = self.lost.is_empty() && self.over.is_empty() && self.leaked.is_empty();
        right && self.jobs > 0 && self.most == SLOTS
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!({
            "scenario": "limits",
            "kills": self.kills,
            "jobs": self.jobs,
            "starts": self.starts,
            "killed": self.killed,
            "most": self.most,
            "limit": SLOTS,
            "lost": self.lost,
            "over": self.over,
            "leaked": self.leaked,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limits: kills {}, jobs {}, starts {}, of these killed {}, ",
            self.kills, self.jobs, self.starts, self.killed
        )?;
        write!(
            f,
            "most at once {} of {SLOTS}, lost {}, over a limit {}, leaked {}",
            self.most,
            self.lost.len(),
            self.over.len(),
            self.leaked.len()
        )?;
        let lines = self.over.iter().chain(&self.leaked).chain(&self.lost);
        for line in lines.take(10) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

fn failed(error: &dyn fmt::Display) -> ChaosError {
    ChaosError::Line(error.to_string())
}

async fn connected(url: &str) -> Result<Broker, ChaosError> {
    let target = Target::parse(url, TlsFiles::default()).map_err(|error| failed(&error))?;
    let keys = JobKeys::default();
    let conn = Conn::open(&target, keys.namespace()).await;
    Ok(Broker::new(conn.map_err(|error| failed(&error))?, keys))
}

/// Returns the host's monotonic clock in nanoseconds, which all its processes share.
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Plays until there have been enough kills and all jobs are done.
///
/// # Errors
/// This machine lacks a program, a worker ends by itself, jobs do not end, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-limits-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let server = RealServer::redis().append_only().start_for("chaos");
    let server = server.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
    let broker = connected(&server.url()).await?;
    jobs::configure(&broker).await?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let enough = Arc::new(AtomicBool::new(false));
    let submitting = jobs::submit(broker.clone(), Arc::clone(&enough), random.random());
    let submitting = tokio::spawn(submitting);
    let tally = dir.path().join("tally");
    let mut troop = Troop::start(plan, dir.path(), server.url(), &tally)?;
    for kill in 1..=plan.kills {
        let peace = kill.is_multiple_of(KILLS_IN_A_ROW);
        let pause = SOON.mul_f64(random.random()) + if peace { PEACE } else { Duration::ZERO };
        troop.peace(pause).await?;
        troop.kill(&mut random).await?;
    }
    troop.peace(PEACE).await?;
    enough.store(true, Ordering::SeqCst);
    let submitted = submitting.await.map_err(|error| failed(&error))??;
    let lost = jobs::all_done(&broker, &submitted).await?;
    let kills = troop.end().await?;
    let said = fs::read_to_string(&tally).map_err(ChaosError::io("the tally"))?;
    let judged = ledger::judge(&ledger::runs(&said)?, &kills, &submitted);
    Ok(Report {
        jobs: submitted.len(),
        starts: judged.starts,
        killed: judged.killed,
        most: judged.most,
        lost,
        over: judged.over,
        leaked: leaked(&broker).await?,
        kills: plan.kills,
    })
}

/// Returns the slots and names that are not free. It finds them by taking them, when no worker runs any more.
async fn leaked(broker: &Broker) -> Result<Vec<String>, ChaosError> {
    let mut leaked = Vec::new();
    let leases = broker.running().await.map_err(|error| failed(&error))?;
    if leases > 0 {
        leaked.push(format!("{leases} leases are left"));
    }
    for (what, key, limit) in [
        ("the queue", None, SLOTS),
        ("a key", Some("key-0"), KEY_SLOTS),
    ] {
        let free = take(broker, what, key, limit + 2).await?;
        if free != limit {
            leaked.push(format!("{free} slots of {what} are free, not {limit}"));
        }
    }
    let taken = jobs::names_taken(broker).await?;
    leaked.extend(taken.map(|name| format!("the name {name} is taken")));
    Ok(leaked)
}

/// Submits new jobs. Returns how many of them can be claimed, after finishing these.
async fn take(
    broker: &Broker,
    what: &str,
    key: Option<&str>,
    jobs: usize,
) -> Result<usize, ChaosError> {
    let error_of = |error: meshwork_broker::Error| failed(&error);
    let mut submitted = Submitted::default();
    for number in 0..jobs {
        let id = format!("last-{}-{number}", what.replace(' ', "-"));
        submitted.add(Sort::Slots, id, key, 0)?;
    }
    submitted.enqueue(broker).await?;
    let token = format!("judge {what}");
    let claim = Claim {
        queues: &[Sort::Slots.queue(broker)?],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: jobs,
        ahead: 0,
        lease: LEASE,
        worker: "judge",
        token: &token,
    };
    let taken = broker.claim(claim).await.map_err(error_of)?.jobs;
    for job in &taken {
        broker
            .complete(job, b"", b"", b"")
            .await
            .map_err(error_of)?;
    }
    // Jobs without a slot must not disturb the next check.
    for id in submitted.ids() {
        if let Some(job) = broker.inspect(id).await.map_err(error_of)? {
            broker.cancel(&job, "over", true).await.map_err(error_of)?;
        }
    }
    Ok(taken.len())
}
