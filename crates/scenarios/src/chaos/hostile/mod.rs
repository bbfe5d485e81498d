//! Hostile: processes of the real command submit and run jobs of all kinds, on a redis-server and on the embedded
//! engine. Meanwhile processes are killed and paused, connections cut, scripts flushed, and memory and disks filled.
//!
//! Accepted jobs are read from the output of the submitters. Starts are read from the workers' logs and from a file
//! to which the scripts append. Both are outside of the store, and on another disk. In the end each accepted job has
//! its one correct end. A kill, a pause or an expired lease explains each start beyond a job's first. Nothing is
//! left: no lease, slot or prefetched id, no process of a script, no folder of a run.

mod culprits;
mod faults;
mod jobs;
mod ledger;
mod leftover;
mod processes;
mod report;
pub(super) mod starts;
pub(super) mod store;
mod submit;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use meshwork_broker::{Broker, MAX_ITEMS};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ChaosError;
use super::fleet::troop::{Member, Quarters, peace};
use faults::{Faults, Scene};
use leftover::Held;
use meshwork_test_servers::servers::{Tool, find};
pub use report::{EngineReport, Report};
use starts::Written;
use store::Store;
use submit::{Submitted, Submitting};

/// Lease of a job, as by default: a busy machine leaves each worker the time to renew it.
const LEASE: Duration = Duration::from_secs(10);
/// Workers on each engine.
const WORKERS: usize = 3;
/// Bytes of the small disk: the log with all jobs' records, logs and events, and the same again during a rewrite of
/// the log.
const DISK: u64 = 16 * 1024 * 1024;
/// Bytes of the small disk for each job.
const DISK_PER_JOB: u64 = 48 * 1024;
/// Longest time in which no further job ends, after the last fault.
const END: Duration = Duration::from_secs(120);
/// Time until nothing is left behind: some leases, and a round of maintenance.
const TIDY: Duration = Duration::from_secs(60);
/// Time until the processes of runs that have ended are gone.
const GONE: Duration = Duration::from_secs(5);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(200);

/// A store of the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A redis-server that writes each command to its disk before it answers.
    Redis,
    /// The embedded engine, owned by a worker.
    Embedded,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Embedded];

    /// Returns the name of the engine.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Embedded => "embedded",
        }
    }

    /// Returns the engine with this name.
    ///
    /// # Errors
    /// No engine has this name; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Engines, which are attacked at the same time.
    pub engines: Vec<Engine>,
    /// Jobs on each engine.
    pub jobs: usize,
    /// Faults on each engine.
    pub faults: u32,
    /// Seed for the choice of jobs, moments and victims. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

pub(super) fn failed(error: &dyn fmt::Display) -> ChaosError {
    ChaosError::Line(error.to_string())
}

/// Plays on all engines of the plan at the same time, until there have been enough faults and all jobs have ended.
///
/// # Errors
/// This machine lacks a program, a worker ends by itself, a program gets stuck, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let engines = plan.engines.iter();
    let played = engines.map(|engine| Box::pin(on(plan, *engine)));
    Ok(Report {
        seed: plan.seed,
        engines: futures_util::future::try_join_all(played).await?,
    })
}

async fn on(plan: &Plan, engine: Engine) -> Result<EngineReport, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-h-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let (temporary, tally) = (dir.path().join("tmp"), dir.path().join("tally"));
    fs::create_dir(&temporary).map_err(ChaosError::io("a temporary directory"))?;
    let bytes = DISK + DISK_PER_JOB * plan.jobs as u64;
    let store = Store::start(engine, dir.path(), Some(bytes))?;
    let disk = store.has_disk();
    let quarters = quarters(plan, dir.path(), &temporary, &store)?;
    let troop = troop(&quarters).await?;
    limit(&quarters).await?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let submitting = Submitting::start(&quarters, &tally, plan.jobs, random.random());
    let scene = Scene {
        engine,
        store,
        troop,
        quarters,
        submitting,
        tally: &tally,
    };
    let (faults, mut scene) = attack(plan, scene, random).await?;
    let submitted = scene.submitting.end().await?;
    let progress = |what| (plan.progress)(&format!("{}: all {what}", engine.name()));
    progress("submitted");
    let broker = scene.store.broker().await?;
    let records = all_ended(&broker, &submitted, &mut scene.troop).await?;
    progress("ended");
    let killed = faults.killed();
    let mut left = tidy(&broker, &mut scene.troop, &killed).await?;
    for member in scene.troop {
        member.stop().await?;
    }
    let held = Held::read(&broker).await?;
    left.extend(held.left(broker.keys()));
    left.extend(held.strangers(&[], &killed));
    left.sort();
    left.dedup();
    let written = Written::read(dir.path(), &tally)?;
    let (starts, expired) = (&written.starts, &written.expired);
    let happened = &faults.happened;
    let mut judged = ledger::judge(&submitted, &records, starts, happened, expired);
    judged.half.extend(held.without_record(broker.keys()));
    judged.unexplained.extend(written.secret());
    let mut processes = faults.left;
    processes.extend(gone(&written).await?);
    let mut report = EngineReport {
        engine,
        jobs: plan.jobs,
        faults: faults.counts,
        happened: faults.happened.iter().map(|it| format!("{it:?}")).collect(),
        accepted: judged.accepted,
        lost: judged.lost,
        half: judged.half,
        starts: written.starts.len(),
        again: judged.again,
        permitted: judged.permitted,
        expired: judged.expired,
        unexplained: judged.unexplained,
        left,
        processes,
        folders: entries(&temporary)?,
        disk,
        files: None,
    };
    if !report.holds() {
        // Keeps the logs of the workers for a search for the reason.
        report.files = Some(dir.keep());
    }
    Ok(report)
}

/// Returns the settings that all commands share.
fn quarters<'a>(
    plan: &'a Plan,
    dir: &'a Path,
    temporary: &Path,
    store: &Store,
) -> Result<Quarters<'a>, ChaosError> {
    let python = find(Tool::Python).ok_or(ChaosError::Missing(Tool::Python.program()))?;
    Ok(Quarters {
        binary: &plan.binary,
        dir,
        types: "osis,python",
        more: &[],
        lease: LEASE,
        environment: vec![
            store.variable(),
            ("MESHWORK_PYTHON", python.into()),
            ("TMPDIR", temporary.into()),
            ("RUST_LOG", starts::LOG.into()),
            ("MESHWORK_LOG_FORMAT", "json".into()),
        ],
        faketime: None,
    })
}

/// Starts the workers.
async fn troop(quarters: &Quarters<'_>) -> Result<Vec<Member>, ChaosError> {
    let mut troop = Vec::new();
    for number in 0..WORKERS {
        troop.push(Member::start(quarters, number)?);
    }
    for member in &mut troop {
        member.listens().await?;
    }
    Ok(troop)
}

/// Causes all the faults, and lets jobs be submitted between and during them.
async fn attack<'a>(
    plan: &Plan,
    mut scene: Scene<'a>,
    random: StdRng,
) -> Result<(Faults, Scene<'a>), ChaosError> {
    let mut faults = Faults::new(random);
    let halves = 2 * plan.faults.max(1) as usize;
    for number in 0..plan.faults as usize {
        scene
            .submitting
            .allow(plan.jobs * (2 * number + 1) / halves);
        let more = plan.jobs * (2 * number + 2) / halves;
        let made = faults.make(&mut scene, |scene| scene.submitting.allow(more));
        let made = made.await?;
        let (number, of, engine) = (number + 1, plan.faults, scene.engine.name());
        (plan.progress)(&format!("{engine}: {number} of {of}: {made}"));
    }
    Ok((faults, scene))
}

/// Sets limits, so that slots are in use.
async fn limit(quarters: &Quarters<'_>) -> Result<(), ChaosError> {
    for words in [
        "queue limit set python --concurrency 9 --key-concurrency 2 --create",
        "queue limit set osis --key-concurrency 2 --fair --create",
    ] {
        let mut command = quarters.command();
        command.args(words.split(' ')).stdin(Stdio::null());
        let ended = command.output().await;
        let ended = ended.map_err(ChaosError::io("the command"))?;
        if !ended.status.success() {
            return Err(ChaosError::Ended {
                program: words.to_owned(),
                status: ended.status.to_string(),
                said: String::from_utf8_lossy(&ended.stderr).into_owned(),
            });
        }
    }
    Ok(())
}

/// Waits until all jobs have ended, or none has for [`END`]. Returns their records.
async fn all_ended(
    broker: &Broker,
    submitted: &Submitted,
    troop: &mut [Member],
) -> Result<HashMap<String, Job>, ChaosError> {
    let ids: Vec<JobId> = submitted
        .jobs
        .iter()
        .map(|job| JobId::foreign(job.id.clone()))
        .collect();
    let (mut until, mut least) = (Instant::now() + END, usize::MAX);
    loop {
        let mut records = HashMap::new();
        for chunk in ids.chunks(MAX_ITEMS) {
            let found = broker.inspect_many(chunk).await.map_err(|it| failed(&it))?;
            records.extend(found.into_iter().flatten().map(|job| (job.id.clone(), job)));
        }
        let open = |job: &Job| !job.status().is_some_and(Status::is_final);
        let open = records.values().filter(|job| open(job)).count();
        if open < least {
            (until, least) = (Instant::now() + END, open);
        }
        if Instant::now() > until || open == 0 {
            return Ok(records);
        }
        peace(troop, LOOK).await?;
    }
}

/// Waits until nothing is left in the store, or the timeout. Returns what is left.
async fn tidy(
    broker: &Broker,
    troop: &mut [Member],
    killed: &[u32],
) -> Result<Vec<String>, ChaosError> {
    let until = Instant::now() + TIDY;
    let there: Result<Vec<u32>, _> = troop.iter().map(Member::pid).collect();
    let there = there?;
    loop {
        let held = Held::read(broker).await?;
        let mut left = held.left(broker.keys());
        left.extend(held.strangers(&there, killed));
        if left.is_empty() || Instant::now() > until {
            return Ok(left);
        }
        peace(troop, LOOK).await?;
    }
}

/// Waits until all processes that scripts recorded have ended. Returns those that have not.
async fn gone(written: &Written) -> Result<Vec<String>, ChaosError> {
    let until = Instant::now() + GONE;
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        let left = processes::alive(&written.noted);
        if left.is_empty() || Instant::now() > until {
            return Ok(left);
        }
    }
}

/// Returns the entries that runs have left in the folder for temporary files.
fn entries(temporary: &Path) -> Result<Vec<String>, ChaosError> {
    let entries = fs::read_dir(temporary).map_err(ChaosError::io("the temporary files"))?;
    let names = entries
        .flatten()
        .map(|entry| entry.path().display().to_string());
    Ok(names.map(|name| format!("{name} is left")).collect())
}
